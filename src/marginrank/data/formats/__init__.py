"""Files and tables that data come from and go to."""
