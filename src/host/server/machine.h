// SPDX-License-Identifier: Apache-2.0
/* machine.h — what a server wants of the machine it runs on. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>

void machine_raise_descriptors(void); /* to what it may have at most */
/* The address by which others reach this machine, by its routes; nothing is sent. */
bool machine_address(char out[static INET_ADDRSTRLEN]);
