//! Steps after the first allocate nothing of their own.

use std::alloc::{GlobalAlloc, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use poul::Seed;
use poul::net::{
    Activation, AdamParams, Batch, DenseRows, Init, Layout, Mlp, Network, SparseRows, Tape, Trainer,
    TrainerParams, Var, Weight,
};

struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "a global allocator is an unsafe trait")]
// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Everything but matrix products, whose packing buffers are the product's own affair.
struct Columns {
    outcome: Vec<f32>,
    policy: Vec<u32>,
    mixtures: Arc<SparseRows>,
    phi: Weight,
    mlp: Mlp,
}

impl Network for Columns {
    fn shared(&self, tape: &mut Tape<'_>, _: usize) {
        let phi = tape.weight(self.phi);
        let z = tape.mix(&self.mixtures, phi);
        tape.share(z);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let x = tape.features();
        let x = tape.dropout(x, 0.3);
        let x = tape.standard_rows(x);
        let y = self.mlp.forward(tape, x);
        let z = tape.shared(0);
        let z = tape.gather(z, batch.pick(&self.policy));
        let y = tape.mul(z, y);
        let both = tape.concat(&[y, z]);
        let target = tape.column(batch.pick(&self.outcome));
        let sums = tape.row_sums(both);
        let entropy = tape.cross_entropy(both, batch.pick(&self.policy), None, batch.scale());
        tape.add_loss(entropy);
        tape.squared_loss(sums, target, None, batch.scale())
    }
}

#[test]
fn steps_reuse_their_buffers() {
    let features: Vec<f32> = (0..64 * 10).map(|i| (i * i % 97) as f32 / 97.0).collect();
    let source = DenseRows::new(&features, 10).unwrap();
    let mut layout = Layout::builder();
    let group = layout.group("all");
    let network = Columns {
        outcome: vec![1.0; 64],
        policy: (0..64).map(|row| row % 3).collect(),
        mixtures: Arc::new(SparseRows::new(4, (0..3).map(|t| [(t, 0.5), (t + 1, 0.5)])).unwrap()),
        phi: layout.matrix("phi", 4, 5, Init::Normal(1.0), group),
        mlp: Mlp::new(&mut layout, "g", &[10, 1], Activation::Relu, Init::Uniform, group),
    };
    let adam = AdamParams { clip_norm: Some(1.0), average: Some(0.9), ..Default::default() };
    let shape = TrainerParams { n_members: 2, shard_rows: 16 };
    let layout = layout.finish().unwrap();
    let mut trainer = Trainer::new(layout, adam.check().unwrap(), shape, Seed::new(1)).unwrap();
    let rows: Vec<u32> = (0..64).rev().collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let counts = pool.install(|| {
        let before_first = N_ALLOCATIONS.load(Ordering::Relaxed);
        trainer.step(&source, &rows, &network).unwrap();
        let after_first = N_ALLOCATIONS.load(Ordering::Relaxed);
        for n_rows in [64, 30, 64, 1, 64] {
            trainer.step(&source, &rows[..n_rows], &network).unwrap();
        }
        (after_first - before_first, N_ALLOCATIONS.load(Ordering::Relaxed) - after_first)
    });
    assert!(counts.0 > 0, "the counter works");
    assert_eq!(counts.1, 0, "steps after the first allocate");
}
