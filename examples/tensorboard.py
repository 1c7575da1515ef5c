"""Training with its metrics in TensorBoard: pip install tensorboardX tensorboard.

    python examples/tensorboard.py examples/europe.tsv run --time 1m
    tensorboard --logdir run.tensorboard
"""

import argparse

from tensorboardX import SummaryWriter

import vlp

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("graph", help="a folder of triples with splits, or a file")
parser.add_argument("run", help="the folder to train into")
parser.add_argument("--time", default="1m", help="how long it may take, or off")
parser.add_argument("--steps", type=int, help="training steps, with --time off")
arguments = parser.parse_args()

writer = SummaryWriter(f"{arguments.run}.tensorboard")


def record(point: vlp.Point) -> None:
    for component, loss in point.losses.items():
        writer.add_scalar(f"loss/{component}", loss, point.step)
    if point.valid_mrr is not None:
        writer.add_scalar("valid MRR", point.valid_mrr, point.step)


settings = {} if arguments.steps is None else {"steps": arguments.steps}
run = vlp.train(arguments.graph, arguments.run, time=arguments.time, callback=record, **settings)
writer.close()
print(run.evaluate())
