"""
Ask and tell for a torch training loop
======================================

``TransferOptimizer`` proposes configurations for anything that returns a score.
"""

# %%
# A small network, trained by hand. There is no scikit-learn estimator and no cross-validation.
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.stats import loguniform, randint
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sktransfer import TransferOptimizer

X, y = load_digits(return_X_y=True)
parts = train_test_split(X / 16, y, random_state=0)
X_train, X_test = (torch.tensor(part, dtype=torch.float32) for part in parts[:2])
y_train, y_test = (torch.tensor(part) for part in parts[2:])


def train(lr, hidden, dropout):
    """Train for a few epochs and return the accuracy on validation data."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, hidden),
        torch.nn.ReLU(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(hidden, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(30):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(X_train), y_train).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return (model(X_test).argmax(1) == y_test).float().mean().item()


space = {"lr": loguniform(1e-3, 1.0), "hidden": randint(8, 128), "dropout": [0.0, 0.2, 0.5]}
optimizer = TransferOptimizer(space, random_state=0)
scores = []
for _ in range(15):
    [params] = optimizer.ask()
    scores.append(train(**params))
    optimizer.tell(params, scores[-1])
print(optimizer)

# %%
# ``optimizer.to_task()`` is a record that `Archive.append` stores, so that the next loop can start
# from it: ``TransferOptimizer(space, tasks=[...])``.
task = optimizer.to_task()
print(task.best.params)
later = TransferOptimizer(space, tasks=[task], random_state=0)
print("the first proposal of the next loop:", later.ask()[0])

# %%
_, ax = plt.subplots(layout="constrained")
ax.plot(np.arange(1, 16), scores, "o", label="trial")
ax.step(np.arange(1, 16), np.maximum.accumulate(scores), where="post", label="best so far")
ax.set(xlabel="Trial", ylabel="Accuracy on validation data")
ax.legend(loc="center right")
