// SPDX-License-Identifier: Apache-2.0
/* Hashes: CRC-32 over {source, destination, source port, destination port, 64-bit discriminator} of the request,
 * 44 bytes in network order, reflected, initial value and final exclusive-or all ones. bpf/include/hash.h computes the
 * same with `hash=crc`, so a host and a switch agree on every index.
 *
 * Rows differ in their polynomial: CRCs that differ only in their initial value collide together, because a CRC is
 * linear. Row 0 is for ids, row 1 for slots, row 2 for coin and route. */
#ifndef XDPMON_HASHING_P4
#define XDPMON_HASHING_P4

/* The list of bpf/include/hash.h and loader/hash.go, most significant bit first; a test compares them. */
#define HASH_ROW_0 32w0x04C11DB7
#define HASH_ROW_1 32w0x1EDC6F41
#define HASH_ROW_2 32w0x741B8CD7
#define HASH_ROW_3 32w0x814141AB

/* An instance of a row: name_poly and name. */
#define HASH_ROW(name, row)                                                                                    \
    CRCPolynomial<bit<32>>(row, true, false, false, 32w0xFFFFFFFF, 32w0xFFFFFFFF) name##_poly;                 \
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, name##_poly) name

/* The one field list that all rows use. */
#define HASH_FIELDS(q)                                                                                         \
    { q.a0, q.a1, q.a2, q.a3, q.b0, q.b1, q.b2, q.b3, q.aport, q.bport, 32w0, q.disc }

#endif
