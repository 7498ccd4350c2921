import torch
from torch import nn

from wordreel.lab.training.moving_average import Averaged


def test_the_average_equals_the_one_number_by_number():
    torch.manual_seed(0)
    averaged = Averaged(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), 0.5)
    expected = {name: value.clone() for name, value in averaged.trained.state_dict().items()}
    for step in range(12):
        averaged.trained(torch.randn(4, 2))  # moves the running statistics
        with torch.no_grad():
            averaged.trained[0].weight.add_(torch.randn(3, 2))
        averaged.update(step)
        share = min(0.5, (1 + step) / (10 + step))
        for name, value in averaged.trained.state_dict().items():
            if value.is_floating_point():
                expected[name] = share * expected[name] + (1 - share) * value
            else:
                expected[name] = value.clone()
    found = averaged.average.state_dict()
    assert int(found["1.num_batches_tracked"]) == 12
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)


def test_only_the_trained_module_has_gradients():
    averaged = Averaged(nn.Linear(2, 2), 0.9)
    assert all(p.requires_grad for p in averaged.trained.parameters())
    assert not any(p.requires_grad for p in averaged.average.parameters())
