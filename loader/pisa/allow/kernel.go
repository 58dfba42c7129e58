package allow

// KernelFunctions is the list of functions of the kernel (kfuncs), with why nothing of them outlives the packet.
var KernelFunctions = map[string]string{
	"bpf_iter_num_new":     "the head of a loop over numbers; the iterator lies on the stack",
	"bpf_iter_num_next":    "the next round of such a loop",
	"bpf_iter_num_destroy": "the end of such a loop",
}
