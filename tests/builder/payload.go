package builder

import "encoding/binary"

// Timestamps is the TCP timestamp option as stacks send it: two NOPs in front.
func Timestamps(val, ecr uint32) []byte {
	opt := []byte{1, 1, 8, 10}
	opt = binary.BigEndian.AppendUint32(opt, val)
	return binary.BigEndian.AppendUint32(opt, ecr)
}

// DNS is a message with one question for example.org (type A), as a client asks or a server answers it.
func DNS(id uint16, response bool) []byte {
	flags := uint16(0x0100) // recursion desired
	if response {
		flags = 0x8180
	}
	msg := binary.BigEndian.AppendUint16(nil, id)
	msg = binary.BigEndian.AppendUint16(msg, flags)
	msg = append(msg, 0, 1, 0, 0, 0, 0, 0, 0)
	msg = append(msg, "\x07example\x03org\x00\x00\x01\x00\x01"...)
	return msg
}

// NTP is a client's request or a server's response; stamp is the request's transmit timestamp in both.
func NTP(stamp uint64, response bool) []byte {
	const version, client, server = 4 << 3, 3, 4
	msg := make([]byte, 48)
	if response {
		msg[0], msg[1] = version|server, 2
		binary.BigEndian.PutUint64(msg[24:], stamp)  // origin
		binary.BigEndian.PutUint64(msg[40:], ^stamp) // its own transmit time is another one
		return msg
	}
	msg[0] = version | client
	binary.BigEndian.PutUint64(msg[40:], stamp)
	return msg
}
