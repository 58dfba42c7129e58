// Code generated from the folders; DO NOT EDIT.

package all

import (
	_ "github.com/xdpmon/xdpmon/userspace/ahab"
	_ "github.com/xdpmon/xdpmon/userspace/beaucoup"
	_ "github.com/xdpmon/xdpmon/userspace/carpe"
	_ "github.com/xdpmon/xdpmon/userspace/conquest"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	_ "github.com/xdpmon/xdpmon/userspace/hhh"
	_ "github.com/xdpmon/xdpmon/userspace/lean"
	_ "github.com/xdpmon/xdpmon/userspace/precision"
	_ "github.com/xdpmon/xdpmon/userspace/reorder"
	_ "github.com/xdpmon/xdpmon/userspace/rttarray"
	_ "github.com/xdpmon/xdpmon/userspace/waits"
)
