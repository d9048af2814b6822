"""What every layer may use: types, checks of parameters, threads, memory, atomic files."""
