package packet

import "testing"

// RFC 3550, section 5.1: two bits of version, seven of payload type, 16 of sequence number.
func TestRTP(t *testing.T) {
	header := func(first, second byte) []byte { return append([]byte{first, second, 0x12, 0x34}, make([]byte, 8)...) }
	for name, c := range map[string]struct {
		message []byte
		payload uint32
		seen    bool
	}{
		"version 2":                {header(0x80, 96), 12, true},
		"padding, extension, mark": {header(0xbf, 0x80|111), 172, true},
		"version 1":                {header(0x40, 96), 12, false},
		"RTCP sender report":       {header(0x80, 200), 28, false},
		"RTCP application":         {header(0x80, 204), 28, false},
		"type 77":                  {header(0x80, 77), 12, true},
		"cut by the capture":       {header(0x80, 96)[:11], 12, false},
		"shorter than a header":    {header(0x80, 96), 11, false},
	} {
		p := Packet{Payload: c.payload}
		p.rtp(c.message)
		if p.Has(RTP) != c.seen || c.seen && p.Seq != 0x1234 {
			t.Errorf("%s: seen %v, sequence number %#x", name, p.Has(RTP), p.Seq)
		}
	}
}
