"""Data for pretraining: thousands of data sets, and how every estimator does on them.

`generator` makes the data sets, `configurations` draws the hyperparameters, `evaluate` scores them,
`store` keeps the scores, and `look` reports how much of the scores can be predicted.
"""
