"""What is minimised: losses on pairs, pair weights, margins, regularisers."""
