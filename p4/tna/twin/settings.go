package twin

import (
	"regexp"
	"strings"

	"github.com/xdpmon/xdpmon/p4"
)

var setting = regexp.MustCompile(`--set ([\w-]+)\.([\w.-]+)=(\S+)`)

// Settings are the parameters for which the eBPF form equals its twin: those in comments of the twin
// (--set NAME.KEY=VALUE), and those that the form adds.
func (t *Twin) Settings(form Form) (map[string]string, error) {
	set := map[string]string{}
	files, err := p4.Sources.ReadDir(t.Name)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := p4.Sources.ReadFile(t.Name + "/" + f.Name())
		if err != nil {
			return nil, err
		}
		for _, m := range setting.FindAllStringSubmatch(string(text), -1) {
			if m[1] == t.Algorithm {
				set[m[2]] = strings.TrimRight(m[3], ".,;:)")
			}
		}
	}
	for key, value := range form.Set {
		set[key] = value
	}
	return set, nil
}
