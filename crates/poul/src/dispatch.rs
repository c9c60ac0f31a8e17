//! One body, two compilations: every kernel runs with AVX2 where the machine has it, without `target-cpu=native`.
//!
//! Both compilations do the same operations in the same order (no fused multiply-add, no reassociation), so the
//! choice changes the speed and never the bits.

/// Declares kernels: each body is compiled for the baseline and for AVX2, and the machine decides at the call.
macro_rules! kernels {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        pub(crate) fn $name($($arg: $type),*) $(-> $output)? {
            #[inline(always)]
            fn body($($arg: $type),*) $(-> $output)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($arg: $type),*) $(-> $output)? {
                    body($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    #[allow(unsafe_code, reason = "calls a safe function compiled for a detected feature")]
                    // SAFETY: `wide` is safe but for needing AVX2, which was detected on this machine just above.
                    return unsafe { wide($($arg),*) };
                }
            }
            body($($arg),*)
        }
    )*};
}

pub(crate) use kernels;

/// The same for a function that is generic: runs it compiled for AVX2 where the machine has it. This reaches what is
/// inlined, so it and what it calls are `#[inline(always)]`.
#[inline(always)]
pub(crate) fn wide<A, R>(work: impl FnOnce(A) -> R, arguments: A) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn run<A, R>(work: impl FnOnce(A) -> R, arguments: A) -> R {
            work(arguments)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            #[allow(unsafe_code, reason = "calls a safe function compiled for a detected feature")]
            // SAFETY: `run` is safe but for needing AVX2, which was detected on this machine just above.
            return unsafe { run(work, arguments) };
        }
    }
    work(arguments)
}
