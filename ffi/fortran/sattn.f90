! SPDX-License-Identifier: BSD-2-Clause
! The C ABI of libsattn for Fortran, word for word: sattn/attention.h, mixture.h and softmax.h are its manual.
! Arrays are row-major there: what C calls [M][D] is real(D, M) here. Fill a descriptor with its _init function, then set
! pointers with c_loc of contiguous arrays.
module sattn
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_float, c_int32_t, c_int64_t, c_null_ptr, c_ptr, c_f_pointer, c_sizeof
    implicit none
    public

    integer(c_int32_t), parameter :: sattn_ok = 0, sattn_evalue = -6
    integer(c_int32_t), parameter :: sattn_covariance_zero = 0, sattn_covariance_diag = 1, sattn_covariance_full = 2, &
                                     sattn_covariance_isotropic = 3, sattn_covariance_cholesky = 4, sattn_covariance_low_rank = 5
    integer(c_int32_t), parameter :: sattn_top_left = 0, sattn_bottom_right = 1, sattn_accumulate = 1

    ! sattn_input and sattn_output of C: an array [B][H][rows][columns] by its strides in elements
    type, bind(c) :: sattn_array
        type(c_ptr) :: data = c_null_ptr
        integer(c_int64_t) :: batch = 0, head = 0, row = 0, col = 0
    end type

    type, bind(c) :: sattn_attention
        integer(c_int64_t) :: size, batch, heads, key_heads, queries, keys, width, value_width
        real(c_double) :: scale, softcap
        integer(c_int64_t) :: left, right
        integer(c_int32_t) :: diagonal, storage, flags, threads
        type(c_ptr) :: key_length, query_offset, key_offset, page
        integer(c_int64_t) :: page_batch, page_size
        type(sattn_array) :: q, k, v, bias, mask, slope, sink
        type(sattn_array) :: out, stats, lse
        type(sattn_array) :: dout, dlse
        type(sattn_array) :: dq, dk, dv, dbias, dsink
        type(c_ptr) :: dscale, work
        integer(c_int64_t) :: work_bytes
    end type

    type, bind(c) :: sattn_mixture
        integer(c_int64_t) :: size, batch, queries, components, width, value_width
        integer(c_int32_t) :: covariance_kind, flags, threads, rank
        type(c_ptr) :: tilt
        integer(c_int64_t) :: tilt_batch, tilt_row
        type(c_ptr) :: log_weight
        integer(c_int64_t) :: log_weight_batch
        type(c_ptr) :: mean
        integer(c_int64_t) :: mean_batch
        type(c_ptr) :: covariance
        integer(c_int64_t) :: covariance_batch
        type(c_ptr) :: value_mean
        integer(c_int64_t) :: value_mean_batch
        type(c_ptr) :: cross
        integer(c_int64_t) :: cross_batch
        type(c_ptr) :: out
        integer(c_int64_t) :: out_batch, out_row
        type(c_ptr) :: stats
        integer(c_int64_t) :: stats_batch
        type(c_ptr) :: cgf
        integer(c_int64_t) :: cgf_batch
        type(c_ptr) :: weight
        integer(c_int64_t) :: weight_batch, weight_row
        type(c_ptr) :: dout
        integer(c_int64_t) :: dout_batch, dout_row
        type(c_ptr) :: dcgf
        integer(c_int64_t) :: dcgf_batch
        type(c_ptr) :: dtilt
        integer(c_int64_t) :: dtilt_batch, dtilt_row
        type(c_ptr) :: dlog_weight, dmean, dcovariance, dvalue_mean, dcross, work
        integer(c_int64_t) :: work_bytes
    end type

    interface
        integer(c_int32_t) function sattn_version() bind(c)
            import
        end function

        function sattn_status_string_c(status) bind(c, name='sattn_status_string')
            import
            integer(c_int32_t), value :: status
            type(c_ptr) :: sattn_status_string_c
        end function

        integer(c_int32_t) function sattn_attention_init(p, size, batch, heads, key_heads, queries, keys, width, &
                                                         value_width) bind(c)
            import
            type(sattn_attention), intent(out) :: p
            integer(c_int64_t), value :: size, batch, heads, key_heads, queries, keys, width, value_width
        end function

        integer(c_int32_t) function sattn_mixture_init(p, size, batch, queries, components, width, value_width, &
                                                       covariance_kind) bind(c)
            import
            type(sattn_mixture), intent(out) :: p
            integer(c_int64_t), value :: size, batch, queries, components, width, value_width
            integer(c_int32_t), value :: covariance_kind
        end function
    end interface

    ! The softmax of rows of x(n, rows), real(c_float) or real(c_double)
    interface sattn_softmax
        integer(c_int32_t) function sattn_softmax_f32(rows, n, x, ldx, y, ldy, threads) bind(c)
            import
            integer(c_int64_t), value :: rows, n, ldx, ldy
            real(c_float), intent(in) :: x(*)
            real(c_float), intent(inout) :: y(*)
            integer(c_int32_t), value :: threads
        end function

        integer(c_int32_t) function sattn_softmax_f64(rows, n, x, ldx, y, ldy, threads) bind(c)
            import
            integer(c_int64_t), value :: rows, n, ldx, ldy
            real(c_double), intent(in) :: x(*)
            real(c_double), intent(inout) :: y(*)
            integer(c_int32_t), value :: threads
        end function
    end interface

    interface
        integer(c_int32_t) function sattn_attention_forward_f32(p) bind(c)
            import
            type(sattn_attention), intent(in) :: p
        end function

        integer(c_int32_t) function sattn_attention_forward_f64(p) bind(c)
            import
            type(sattn_attention), intent(in) :: p
        end function

        integer(c_int32_t) function sattn_attention_backward_f32(p) bind(c)
            import
            type(sattn_attention), intent(in) :: p
        end function

        integer(c_int32_t) function sattn_attention_backward_f64(p) bind(c)
            import
            type(sattn_attention), intent(in) :: p
        end function

        integer(c_int32_t) function sattn_mixture_forward_f32(p) bind(c)
            import
            type(sattn_mixture), intent(in) :: p
        end function

        integer(c_int32_t) function sattn_mixture_forward_f64(p) bind(c)
            import
            type(sattn_mixture), intent(in) :: p
        end function

        integer(c_int32_t) function sattn_mixture_backward_f32(p) bind(c)
            import
            type(sattn_mixture), intent(in) :: p
        end function

        integer(c_int32_t) function sattn_mixture_backward_f64(p) bind(c)
            import
            type(sattn_mixture), intent(in) :: p
        end function
    end interface

contains

    ! One line of English for a status
    function sattn_status_string(status) result(text)
        integer(c_int32_t), intent(in) :: status
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i

        call c_f_pointer(sattn_status_string_c(status), letters, [256])
        text = ''
        do i = 1, 256
            if (letters(i) == achar(0)) exit
            text = text // letters(i)
        end do
    end function

end module
