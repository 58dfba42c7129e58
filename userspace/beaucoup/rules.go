package beaucoup

import (
	"encoding/json"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// p4Rules implements algo.Descriptor.P4Rules: the entries for the queries, on a switch whose program was generated from the
// set that beaucoup.compiled names.
func p4Rules(v algo.Values) ([]byte, error) {
	i, err := configured(v, algo.Env{Replay: true})
	if err != nil {
		return nil, err
	}
	if err := i.program.CheckP4(); err != nil {
		return nil, err
	}
	queries, err := readCompiled(v)
	if err != nil {
		return nil, err
	}
	compiled, err := compile.Compile(queries, i.options)
	if err != nil {
		return nil, err
	}
	rules, err := i.program.Rules(compiled)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(rules, "", " ")
	return append(text, '\n'), err
}
