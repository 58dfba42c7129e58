// Code generated from the folders; DO NOT EDIT.

package all

import (
	_ "github.com/xdpmon/xdpmon/p4/ahab"
	_ "github.com/xdpmon/xdpmon/p4/beaucoup"
	_ "github.com/xdpmon/xdpmon/p4/carpe"
	_ "github.com/xdpmon/xdpmon/p4/conquest"
	_ "github.com/xdpmon/xdpmon/p4/fridge"
	_ "github.com/xdpmon/xdpmon/p4/hhh"
	_ "github.com/xdpmon/xdpmon/p4/lean"
	_ "github.com/xdpmon/xdpmon/p4/precision"
	_ "github.com/xdpmon/xdpmon/p4/reorder"
	_ "github.com/xdpmon/xdpmon/p4/rttarray"
)
