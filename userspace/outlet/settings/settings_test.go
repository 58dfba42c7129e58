package settings

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/config"
)

// Receivers of findings are URLs of hosts that HTTP reaches.
func TestAlerting(t *testing.T) {
	for text, want := range map[string]string{"http://127.0.0.1:9093": "", "'https://h/path?x=1'": "", "'http://'": "give a URL", "'http:///path'": "give a URL", "ftp://h": "give a URL", "h": "give a URL", "'http://%zz'": "give a URL", "'http://h:x'": "give a URL"} {
		for _, key := range []string{"alertmanager", "webhook"} {
			var n yaml.Node
			if err := yaml.Unmarshal([]byte("{"+key+": "+text+"}"), &n); err != nil {
				t.Fatal(err)
			}
			p := &config.Parser{File: "f"}
			v, ok := config.Decode(p, Alerting(), n.Content[0])
			if ok != (want == "") || !ok && !strings.Contains(p.Problems[0].Text, key+" ") || !ok && !strings.Contains(p.Problems[0].Text, want) {
				t.Errorf("%s: %s: %+v, %+v", key, text, v, p.Problems)
			}
			if a := v.(Alerts); ok && a.Alertmanager+a.Webhook != strings.Trim(text, "'") || ok && (a.Webhook != "") != (key == "webhook") {
				t.Errorf("%s: %+v", text, a)
			}
		}
	}
}
