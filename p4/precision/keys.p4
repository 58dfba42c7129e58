// SPDX-License-Identifier: Apache-2.0
/* The words of a key: struct key of bpf/include/key.h for IPv4, of the fields whose bits are set in PRECISION_FIELDS (enum key_field there: source 1,
 * destination 2, source port 4, destination port 8, protocol 16).
 *
 *   word 0  {source or 0, destination or 1}
 *   word 1  {ports, protocol and tag}; without any of these it does not exist, and without addresses it is word 0 */
#ifndef XDPMON_PRECISION_KEYS_P4
#define XDPMON_PRECISION_KEYS_P4

#define KEY_ADDRESSES (PRECISION_FIELDS & 3)
#define KEY_PORTS (PRECISION_FIELDS & 12)

#if PRECISION_FIELDS & 1
#define KEY_SOURCE hdr.ipv4.src
#else
#define KEY_SOURCE 32w0
#endif

#if PRECISION_FIELDS & 2
#define KEY_DESTINATION hdr.ipv4.dst
#else
#define KEY_DESTINATION 32w1
#endif

/* A packet without ports has no key of ports alone. */
#if KEY_PORTS && !KEY_ADDRESSES
#define FLOW_KIND
#define KEY_THERE true, 1 &&& 1
#else
#define KEY_THERE true
#endif

/* In a field list, where an omitted field is zeros, and as one operand. */
#if KEY_PORTS == 12
#define KEY_PORT_FIELDS q.ports
#define KEY_PORT_WORD q.ports
#elif KEY_PORTS == 8
#define KEY_PORT_FIELDS 16w0, q.ports[15:0]
#define KEY_PORT_WORD ports
#elif KEY_PORTS == 4
#define KEY_PORT_FIELDS q.ports[31:16], 16w0
#define KEY_PORT_WORD ports
#else
#define KEY_PORT_FIELDS 32w0
#define KEY_PORT_WORD 32w0
#endif

#if PRECISION_FIELDS & 16
#define KEY_PROTOCOL hdr.ipv4.protocol
#else
#define KEY_PROTOCOL 8w0
#endif

/* The field list of both rows: five words of key and one of zeros, as in key_fields_of of bpf/include/key.h. */
#if KEY_ADDRESSES && PRECISION_FIELDS & 28
#define WAYS_WORDS 2
#define KEY_WORDS { KEY_SOURCE, KEY_DESTINATION, KEY_PORT_FIELDS, KEY_PROTOCOL, 24w1, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0 }
#define KEY_WORD_0 KEY_SOURCE, KEY_DESTINATION
#define KEY_WORD_1 KEY_PORT_WORD, tag
#elif KEY_ADDRESSES
#define WAYS_WORDS 1
#define KEY_WORDS { KEY_SOURCE, KEY_DESTINATION, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0 }
#define KEY_WORD_0 KEY_SOURCE, KEY_DESTINATION
#else
#define WAYS_WORDS 1
#define KEY_WORDS { KEY_PORT_FIELDS, KEY_PROTOCOL, 24w1, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0 }
#define KEY_WORD_0 KEY_PORT_WORD, tag
#endif

#endif
