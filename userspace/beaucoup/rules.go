package beaucoup

import (
	"encoding/json"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// P4Rules implements algo.TwinRules: it generates the entries for the queries, on a switch whose program was generated from the
// set beaucoup.compiled.
func (c *config) P4Rules() ([]byte, error) {
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	if err := p.CheckP4(); err != nil {
		return nil, err
	}
	queries, err := readCompiled(c.values)
	if err != nil {
		return nil, err
	}
	compiled, err := compile.Compile(queries, c.options)
	if err != nil {
		return nil, err
	}
	rules, err := p.Rules(compiled)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(rules, "", " ")
	return append(text, '\n'), err
}
