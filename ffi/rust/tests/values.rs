// SPDX-License-Identifier: BSD-2-Clause
use sattn::{softmax, Attention, Covariance, Error, Mixture};

#[test]
fn mixture_of_the_readme() {
    let mixture = Mixture {
        log_weight: vec![-0.7, -0.7],
        mean: vec![3., 0., 0., 3.],
        covariance: Covariance::Diagonal(vec![1f64; 4]),
    };
    let u = [0.5, 0.2];
    let r = mixture.forward(&u).unwrap();
    let g = mixture.backward(&u, &r, &[1., 0.]).unwrap();
    for (value, expected) in [(r.out[0], 2.632849), (r.out[1], 1.067151), (r.cgf[0], 1.286154), (g.mixture.mean[0], 1.019200)]
    {
        assert!((value - expected).abs() < 5e-7, "{value} {expected}");
    }
}

/// Every kind of the same covariance 4 I gives the same answer, and its gradient has its shape.
#[test]
fn covariance_kinds() {
    let full = vec![4f64, 0., 0., 4.];
    let kinds = [
        Covariance::Diagonal(vec![4.; 2]),
        Covariance::Full(full),
        Covariance::Isotropic(vec![4.]),
        Covariance::Cholesky(vec![2., 0., 0., 2.]),
        Covariance::LowRank { rank: 1, values: vec![3., 4., 1., 0.] },
    ];
    for covariance in kinds {
        let mixture = Mixture { log_weight: vec![0.], mean: vec![1., 2.], covariance };
        let r = mixture.forward(&[0.5, -1.]).unwrap();
        assert_eq!(r.out, [3., -2.]);
        let g = mixture.backward(&[0.5, -1.], &r, &[1., 1.]).unwrap();
        assert_eq!(g.tilt, [4., 4.]);
        assert_eq!(g.mixture.log_weight, [0.]);
    }
    let atom = Mixture { log_weight: vec![0f32], mean: vec![1., 2.], covariance: Covariance::Zero };
    assert_eq!(atom.forward(&[3., 4.]).unwrap().out, [1., 2.]);
}

/// Gradients of attention against central differences.
#[test]
fn attention_slopes() {
    let problem = Attention::<f64>::new([1, 2, 1], [2, 3], [2, 1]).unwrap().causal();
    let wave = |n: usize, f: f64| (0..n).map(|i| (f * (i as f64 + 1.)).sin()).collect::<Vec<_>>();
    let (q, mut k, v, dout) = (wave(8, 1.), wave(6, 2.), wave(3, 3.), wave(4, 5.));
    let (out, stats) = problem.forward(&q, &k, &v).unwrap();
    let g = problem.backward([&q, &k, &v], (&out, &stats), &dout).unwrap();
    let step = 1e-5;
    for i in 0..k.len() {
        let mut side = |by: f64| {
            let old = k[i];
            k[i] = old + by;
            let (out, _) = problem.forward(&q, &k, &v).unwrap();
            k[i] = old;
            out.iter().zip(&dout).map(|(o, d)| o * d).sum::<f64>()
        };
        let slope = (side(step) - side(-step)) / (2. * step);
        assert!((slope - g.k[i]).abs() < 1e-9, "{slope} {}", g.k[i]);
    }
}

#[test]
fn errors() {
    let mut y = [0f32; 2];
    assert_eq!(softmax(2, &[1f32, 2., 3.], &mut y), Err(Error::Length { name: "x", expected: 2, found: 3 }));
    assert!(Attention::<f32>::new([1, 3, 2], [1, 1], [1, 1]).is_err());
    let problem = Attention::<f32>::new([1, 1, 1], [1, 1], [1, 1]).unwrap().scale(f64::NAN);
    let error = problem.forward(&[0.], &[0.], &[0.]).unwrap_err();
    assert_eq!(error, Error::Status(-6));
    assert!(!error.to_string().is_empty());
}
