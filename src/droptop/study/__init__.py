"""Studies: grids of runs that survive whatever happens to the machines they run on."""
