# SPDX-License-Identifier: BSD-2-Clause
"""What softmax attention learns, from Python: tasks, risks, gradients, Hessians (sattn/task.h, sattn/learn.h).

    task = Task(log_weight, mean, covariance, value_mean, cross, value_variance)
    z, weight = task.quadrature(48)
    predicted, variance = task.bayes(z)                     # Bayes risk: weight @ variance
    learn = Learn(log_weight, mean, covariance, z, predicted, weight, heads=2)
    risk, gradient = learn.risk(parameter)                  # parameter = learn.join(U=..., V=...)

A Task's or a Learn's arrays are kept alive by it.
"""
import ctypes

import numpy as np

import sattn
from sattn import _F64, _I32, _I64, _PTR, _U64, _check, _Descriptor, _fields, _pointer, hermite, library
from sattn.fitting import _PROGRESS

SOFTMAX, LINEAR = 0, 1
SQUARED, LOGISTIC, CATEGORICAL = 0, 1, 2
DESCENT, ADAM = 0, 1
CONSTANT, COSINE, DROPS = 0, 1, 2
PARTS = {"U": 1, "u": 2, "V": 4, "K": 8, "k": 16}


class TaskDescriptor(_Descriptor):
    """struct sattn_task of sattn/task.h"""
    _fields_ = _fields("i:size components width value_width;j:threads reserved;"
                       "p:log_weight mean covariance value_mean cross value_variance")


class LearnDescriptor(_Descriptor):
    """struct sattn_learn of sattn/learn.h"""
    _fields_ = _fields("i:size tasks queries heads components width input_width output_width;"
                       "j:covariance_kind attention loss trained shared threads;"
                       "p:log_weight mean covariance input target weight")


_DRAW = ctypes.CFUNCTYPE(ctypes.c_int32, _PTR, ctypes.c_int64)


class TrainDescriptor(_Descriptor):
    """struct sattn_train of sattn/train.h"""
    _fields_ = (_fields("i:size;j:optimiser schedule;i:steps until") + [("drop_at", ctypes.c_int64 * 2)] +
                _fields("d:drop rate clip") + [("decay", _F64 * 2)] + _fields("d:epsilon;i:step;p:parameter") +
                [("moment", _PTR * 2), ("trace", _PTR), ("draw", _DRAW), ("progress", _PROGRESS),
                 ("context", _PTR)])


def _array(name, a, shape):
    a = np.ascontiguousarray(a, np.float64)
    if a.shape != shape:
        raise ValueError(f"{name} has shape {a.shape}, not {shape}")
    return a


class Task:
    """The joint law of queries and targets: log_weight [C], mean [C, N], covariance [C, N, N],
    value_mean [C, E], cross [C, E, N] or None, value_variance [C] or None."""

    def __init__(self, log_weight, mean, covariance, value_mean, cross=None, value_variance=None, threads=0):
        (c, n), e = np.shape(mean), np.shape(value_mean)[1]
        shapes = dict(log_weight=(c,), mean=(c, n), covariance=(c, n, n), value_mean=(c, e), cross=(c, e, n),
                      value_variance=(c,))
        given = dict(log_weight=log_weight, mean=mean, covariance=covariance, value_mean=value_mean,
                     cross=cross, value_variance=value_variance)
        self.arrays = {name: _array(name, a, shapes[name]) for name, a in given.items() if a is not None}
        self.components, self.width, self.value_width = c, n, e
        self.descriptor = TaskDescriptor()
        _check(library.sattn_task_init(ctypes.byref(self.descriptor), _I64(ctypes.sizeof(TaskDescriptor)),
                                       _I64(c), _I64(n), _I64(e)))
        self.descriptor.threads = threads
        for name, a in self.arrays.items():
            setattr(self.descriptor, name, _pointer(a))

    @classmethod
    def denoising(cls, log_weight, mean, covariance, noise, **more):
        """Clean x from the mixture, query x + N(0, noise I), target x."""
        clean = np.asarray(covariance, float)
        return cls(log_weight, mean, clean + noise * np.eye(clean.shape[-1]), mean, clean,
                   np.trace(clean, axis1=1, axis2=2), **more)

    @classmethod
    def classification(cls, log_weight, mean, covariance, label, **more):
        """Query x from the mixture, target the label of its component: [C] numbers, or [C, E], one-hot for instance."""
        label = np.asarray(label, float)
        return cls(log_weight, mean, covariance, label[:, None] if label.ndim == 1 else label, **more)

    @classmethod
    def regressions(cls, log_weight, mean, covariance, slope, noise=0., **more):
        """Query x from the mixture, target slope x + N(0, noise I) with its component's slope [C, E, N]"""
        slope, covariance = np.asarray(slope, float), np.asarray(covariance, float)
        cross = slope @ covariance
        return cls(log_weight, mean, covariance, np.einsum("cei,ci->ce", slope, mean), cross,
                   np.einsum("cei,cei->c", cross, slope) + noise * slope.shape[1], **more)

    def joint(self):
        """The law of the tokens (z, y) of `prompt`, a mixture: log_weight, mean [C, N + E], covariance"""
        a, e = self.arrays, self.value_width
        cross = a.get("cross", np.zeros((self.components, e, self.width)))
        known = cross @ np.linalg.solve(a["covariance"], np.swapaxes(cross, 1, 2))
        left = a.get("value_variance", np.zeros(self.components)) - np.trace(known, axis1=1, axis2=2)
        values = known + left[:, None, None] / max(e, 1) * np.eye(e)
        covariance = np.block([[a["covariance"], np.swapaxes(cross, 1, 2)], [cross, values]])
        return a["log_weight"], np.concatenate([a["mean"], a["value_mean"]], 1), covariance

    def bayes(self, z):
        """-> E[y | z] [n, E] and E[|y - E[y | z]|^2 | z] [n]"""
        z = _array("z", z, (len(z), self.width))
        predicted, variance = np.empty((len(z), self.value_width)), np.empty(len(z))
        _check(library.sattn_task_bayes_f64(ctypes.byref(self.descriptor), _I64(len(z)), _pointer(z),
                                            _pointer(predicted), _pointer(variance)))
        return predicted, variance

    def affine(self, affine=True):
        """The best affine, or linear, predictor -> matrix [E, N], offset [E], risk"""
        matrix, offset, risk = np.empty((self.value_width, self.width)), np.empty(self.value_width), _F64()
        _check(library.sattn_task_affine_f64(ctypes.byref(self.descriptor), _I32(affine), _pointer(matrix),
                                             _pointer(offset), ctypes.byref(risk)))
        return matrix, offset, risk.value

    def quadrature(self, rule):
        """`rule`: an order of Gauss and Hermite, or nodes and weights -> points [.., N] and weights"""
        node, weight = hermite(rule) if np.isscalar(rule) else rule
        node, weight = _array("node", node, (len(node),)), _array("weight", weight, (len(node),))
        count = self.components * len(node) ** self.width
        point, mass = np.empty((count, self.width)), np.empty(count)
        _check(library.sattn_task_quadrature_f64(ctypes.byref(self.descriptor), _I64(len(node)), _pointer(node),
                                                 _pointer(weight), _pointer(point), _pointer(mass)))
        return point, mass

    def draw(self, seed, stream, first, n):
        """-> points [n, N] and their components [n]"""
        point, component = np.empty((max(n, 0), self.width)), np.empty(max(n, 0), np.int32)
        _check(library.sattn_task_draw_f64(ctypes.byref(self.descriptor), _U64(seed),
                                           _U64(stream), _I64(first), _I64(n), _pointer(point),
                                           _pointer(component)))
        return point, component

    def risk(self, seed, stream, first, n):
        """The Bayes risk of the squared loss by Monte Carlo -> risk, its standard error"""
        risk, error = _F64(), _F64()
        _check(library.sattn_task_risk_f64(ctypes.byref(self.descriptor), _U64(seed), _U64(stream), _I64(first),
                                           _I64(n), ctypes.byref(risk), ctypes.byref(error)))
        return risk.value, error.value

    def prompt(self, seed, stream, first, n):
        """Tokens (z, y) -> [n, N + E] and their components [n]"""
        token = np.empty((max(n, 0), self.width + self.value_width))
        component = np.empty(max(n, 0), np.int32)
        _check(library.sattn_task_prompt_f64(ctypes.byref(self.descriptor), _U64(seed),
                                             _U64(stream), _I64(first), _I64(n), _pointer(token),
                                             _pointer(component)))
        return token, component


class Learn:
    """The risk of attention heads over the prompts of tasks. A prompt is log_weight [C], mean [C, D] and
    covariance None, [C, D] or [C, D, D]; input [M, N], target [M, E], weight [M] or None (1 / number). Arrays
    of several tasks have a leading axis; prompts without it are shared. trained: letters of U u V K k."""

    def __init__(self, log_weight, mean, covariance, input, target, weight=None, heads=1, attention=SOFTMAX,
                 loss=SQUARED, trained="UuVKk", threads=0):
        p = self.descriptor = LearnDescriptor()
        _check(library.sattn_learn_init(ctypes.byref(p), _I64(ctypes.sizeof(p))))
        tasks = np.shape(input)[:-2]
        prompts = np.shape(mean)[:-2]
        if len(tasks) > 1 or prompts not in ((), tasks):
            raise ValueError(f"tasks {tasks} of input do not go with {prompts} of mean")
        m, n, e = np.shape(input)[-2], np.shape(input)[-1], np.shape(target)[-1]
        c, d = np.shape(mean)[-2:]
        diagonal = covariance is not None and np.ndim(covariance) == np.ndim(mean)
        shapes = dict(log_weight=prompts + (c,), mean=prompts + (c, d),
                      covariance=prompts + ((c, d) if diagonal else (c, d, d)), input=tasks + (m, n),
                      target=tasks + (m, e), weight=tasks + (m,))
        given = dict(log_weight=log_weight, mean=mean, covariance=covariance, input=input, target=target,
                     weight=weight)
        self.arrays = {name: _array(name, a, shapes[name]) for name, a in given.items() if a is not None}
        for name, a in self.arrays.items():
            setattr(p, name, _pointer(a))
        p.tasks, p.queries, p.heads, p.components = tasks[0] if tasks else 1, m, heads, c
        p.width, p.input_width, p.output_width = d, n, e
        p.covariance_kind = sattn.ZERO if covariance is None else sattn.DIAG if diagonal else sattn.FULL
        p.attention, p.loss, p.shared, p.threads = attention, loss, int(prompts != tasks), threads
        p.trained = sum(PARTS[part] for part in trained)
        count = _I64()
        _check(library.sattn_learn_count(ctypes.byref(p), ctypes.byref(count)))
        self.count, self.shape = count.value, tasks + (m,)
        self.parts = dict(U=(heads, d, n), u=(heads, d), V=(heads, e, d), K=(e, n), k=(e,))

    def split(self, parameter):
        """The parts of a parameter array, by name, as views"""
        parts, first = {}, 0
        for name, shape in self.parts.items():
            size = int(np.prod(shape))
            parts[name] = parameter[first:first + size].reshape(shape)
            first += size
        return parts

    def join(self, **parts):
        """A parameter array with the parts given, the rest 0"""
        parameter = np.zeros(self.count)
        views = self.split(parameter)
        for name, a in parts.items():
            views[name][...] = a
        return parameter

    def predict(self, parameter):
        parameter = _array("parameter", parameter, (self.count,))
        predicted = np.empty(self.shape + (self.descriptor.output_width,))
        _check(library.sattn_learn_predict_f64(ctypes.byref(self.descriptor), _pointer(parameter),
                                               _pointer(predicted)))
        return predicted

    def _risk(self, parameter, gradient, loss):
        parameter, risk = _array("parameter", parameter, (self.count,)), _F64()
        _check(library.sattn_learn_risk_f64(ctypes.byref(self.descriptor), _pointer(parameter),
                                            ctypes.byref(risk), _pointer(gradient), _pointer(loss)))
        return risk.value

    def risk(self, parameter):
        """-> risk and gradient"""
        gradient = np.empty(self.count)
        return self._risk(parameter, gradient, None), gradient

    def losses(self, parameter):
        """-> risk and the loss of every query"""
        loss = np.empty(self.shape)
        return self._risk(parameter, None, loss), loss

    def least(self):
        """The risk and the losses that no predictor goes below, given the targets"""
        risk, loss = _F64(), np.empty(self.shape)
        _check(library.sattn_learn_least_f64(ctypes.byref(self.descriptor), ctypes.byref(risk), _pointer(loss)))
        return risk.value, loss

    def hessian(self, parameter, direction=None):
        """The Hessian times a direction, or all of it"""
        if direction is None:
            return np.stack([self.hessian(parameter, row) for row in np.eye(self.count)])
        parameter, direction = (_array(name, a, (self.count,)) for name, a in
                                (("parameter", parameter), ("direction", direction)))
        product = np.empty(self.count)
        _check(library.sattn_learn_hessian_f64(ctypes.byref(self.descriptor), _pointer(parameter),
                                               _pointer(direction), _pointer(product)))
        return product

    def spectrum(self, parameter):
        """Eigenvalues [T], falling, and vectors [T, P] of the Hessian of the trained parameters"""
        parameter, count = _array("parameter", parameter, (self.count,)), _I64()
        _check(library.sattn_learn_spectrum_f64(ctypes.byref(self.descriptor), _pointer(parameter),
                                                ctypes.byref(count), None, None))
        value, vector = np.empty(count.value), np.empty((count.value, self.count))
        _check(library.sattn_learn_spectrum_f64(ctypes.byref(self.descriptor), _pointer(parameter),
                                                ctypes.byref(count), _pointer(value), _pointer(vector)))
        return value, vector

    def iterate(self, parameter, steps):
        """z <- f(z) from the queries -> points [.., N] and the lengths of the last step"""
        parameter = _array("parameter", parameter, (self.count,))
        point, moved = np.empty(self.shape + (self.descriptor.input_width,)), np.empty(self.shape)
        _check(library.sattn_learn_iterate_f64(ctypes.byref(self.descriptor), _pointer(parameter),
                                               _I64(steps), _pointer(point), _pointer(moved)))
        return point, moved


class Train:
    """A training that can be continued: `parameter`, `moment` and `step` are its state, what a checkpoint keeps.
    Options: the members of struct sattn_train. draw(step) refills the arrays of learn.arrays in place;
    progress(step, risk) may return True to stop."""

    def __init__(self, learn, parameter, steps, draw=None, progress=None, **options):
        self.learn, self.steps = learn, steps
        self.parameter = _array("parameter", parameter, (learn.count,)).copy()
        self.moment, self.trace = np.zeros((2, learn.count)), np.full(steps, np.nan)
        t = self.descriptor = TrainDescriptor()
        _check(library.sattn_train_init(ctypes.byref(t), _I64(ctypes.sizeof(t)), _I64(steps)))
        for name, value in options.items():
            if name not in dict(t._fields_):
                raise TypeError(f"struct sattn_train has no {name}")
            setattr(t, name, type(getattr(t, name))(*value) if np.ndim(value) else value)
        t.parameter, t.trace = _pointer(self.parameter), _pointer(self.trace)
        for i in range(2):
            t.moment[i] = _pointer(self.moment[i])
        if draw:
            t.draw = _DRAW(lambda context, step: int(bool(draw(step))))
        if progress:
            t.progress = _PROGRESS(lambda context, step, risk: int(bool(progress(step, risk))))

    @property
    def step(self):
        return self.descriptor.step

    @step.setter
    def step(self, step):
        self.descriptor.step = step

    def run(self, until=None):
        """Up to a step, or to the end -> self"""
        self.descriptor.until = self.steps if until is None else until
        _check(library.sattn_train_f64(ctypes.byref(self.descriptor), ctypes.byref(self.learn.descriptor)))
        return self
