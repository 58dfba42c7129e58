package diagnose

import _ "github.com/xdpmon/xdpmon/userspace/all"
