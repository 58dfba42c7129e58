package privilege

import "errors"

// ErrDescriptors is wrapped when the process may not open as many files as it needs.
var ErrDescriptors = errors.New("too few file descriptors")

// DescriptorRemedy is what helps then.
const DescriptorRemedy = "raise the limit on open files (ulimit -n 4096, LimitNOFILE=4096 of a service), or measure less at once"
