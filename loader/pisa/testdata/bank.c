// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The bank of the programs that follow: chosen by one that accesses no bank itself. */
#include "program.h"
#include "window.h"

REGISTER(flows, 0, __u32, ENTRIES);

PROGRAM(bank_of_a_group)
{
	phv->bank = WINDOW_BANK(phv, 3);
	NEXT();
}

PROGRAM(bank_that_is_none)
{
	phv->bank = phv->needs >> 16; /* want: 1 flow-state phv_scratch */
}

PROGRAM(bank_and_what_is_after)
{
	*(__u16 *)&phv->bank = phv->needs & 1; /* want: 1 flow-state phv_scratch */
}
