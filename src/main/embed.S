// SPDX-License-Identifier: Apache-2.0
// croft-guest, whole, inside croft.
    .section .rodata
    .global croft_guest_start, croft_guest_end
    .hidden croft_guest_start
    .hidden croft_guest_end
    .balign 16
croft_guest_start:
    .incbin GUEST_FILE
croft_guest_end:
    .section .note.GNU-stack,"",@progbits
