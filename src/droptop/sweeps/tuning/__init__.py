"""Tuning: options found on training images that are held out, by Optuna, through the engines of sweeps.

space.py            what may vary, and between which values
request.py          what a folder was asked to tune, and the configurations of its trials
study.py            Optuna's study, in the folder: the only file that knows Optuna
trial_run.py        one seed that tells the study how it goes, and ends where that says so
run_folders.py      a run folder per trial
tuner.py            the trials, by an engine
confirming.py       fresh seeds for the best of them, and the choice
tune_json.py        what was found, from files alone
tune_json_shape.py  what that file has to look like
verify_tuning.py    whether all of it is what was written
arms.py             every arm of a comparison, tuned alike
"""
