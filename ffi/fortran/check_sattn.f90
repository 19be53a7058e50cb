! SPDX-License-Identifier: BSD-2-Clause
! The example of the README, a causal attention and a refusal, through the module.
program check_sattn
    use, intrinsic :: iso_c_binding
    use sattn
    implicit none

    real(c_float) :: x(3) = [0.0, 0.0, 0.0], y(3) = -1

    x(3) = -huge(x)
    call need(sattn_softmax(1_c_int64_t, 3_c_int64_t, x, 3_c_int64_t, y, 3_c_int64_t, 0_c_int32_t) == sattn_ok, 'softmax')
    call need(all(y == [0.5, 0.5, 0.0]), 'values of softmax')
    call mixture()
    call attention()
    print '(a, i0)', 'libsattn ', sattn_version()

contains

    subroutine need(condition, what)
        logical, intent(in) :: condition
        character(*), intent(in) :: what

        if (.not. condition) error stop what
    end subroutine

    subroutine mixture()
        real(c_double), target :: log_weight(2) = -0.7d0, mean(2, 2) = reshape([3d0, 0d0, 0d0, 3d0], [2, 2]), variance(2, 2) = 1
        real(c_double), target :: tilt(2, 1) = reshape([0.5d0, 0.2d0], [2, 1]), dout(2, 1) = reshape([1d0, 0d0], [2, 1])
        real(c_double), target :: out(2, 1), stats(2, 1), cgf(1), dmean(2, 2)
        type(sattn_mixture) :: p

        call need(sattn_mixture_init(p, c_sizeof(p), 1_c_int64_t, 1_c_int64_t, 2_c_int64_t, 2_c_int64_t, 0_c_int64_t, &
                                     sattn_covariance_diag) == sattn_ok, 'mixture init')
        p%tilt = c_loc(tilt)
        p%log_weight = c_loc(log_weight)
        p%mean = c_loc(mean)
        p%covariance = c_loc(variance)
        p%out = c_loc(out)
        p%stats = c_loc(stats)
        p%cgf = c_loc(cgf)
        call need(sattn_mixture_forward_f64(p) == sattn_ok, 'mixture forward')
        p%dout = c_loc(dout)
        p%dmean = c_loc(dmean)
        call need(sattn_mixture_backward_f64(p) == sattn_ok, 'mixture backward')
        call need(all(abs(out(:, 1) - [2.632849d0, 1.067151d0]) < 5d-7), 'mixture out')
        call need(abs(cgf(1) - 1.286154d0) < 5d-7, 'mixture cgf')
        call need(abs(dmean(1, 1) - 1.019200d0) < 5d-7, 'mixture dmean')
    end subroutine

    subroutine attention()
        real(c_double), target :: q(1, 2) = 0, k(1, 2) = 1, v(1, 2) = reshape([3d0, 5d0], [1, 2])
        real(c_double), target :: out(1, 2), stats(2, 2), dout(1, 2) = 1, dv(1, 2)
        type(sattn_attention) :: p

        call need(sattn_attention_init(p, c_sizeof(p), 1_c_int64_t, 1_c_int64_t, 1_c_int64_t, 2_c_int64_t, 2_c_int64_t, &
                                       1_c_int64_t, 1_c_int64_t) == sattn_ok, 'attention init')
        p%right = 0
        p%q%data = c_loc(q)
        p%k%data = c_loc(k)
        p%v%data = c_loc(v)
        p%out%data = c_loc(out)
        p%stats%data = c_loc(stats)
        call need(sattn_attention_forward_f64(p) == sattn_ok, 'attention forward')
        call need(all(out(1, :) == [3d0, 4d0]), 'values of attention')
        p%dout%data = c_loc(dout)
        p%dv%data = c_loc(dv)
        call need(sattn_attention_backward_f64(p) == sattn_ok, 'attention backward')
        call need(all(dv(1, :) == [1.5d0, 0.5d0]), 'gradient of the values')
        p%softcap = -1
        call need(sattn_attention_forward_f64(p) == sattn_evalue, 'a negative cap')
        call need(len(sattn_status_string(sattn_evalue)) > 5, 'status string')
    end subroutine

end program
