package chart

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	agent "github.com/xdpmon/xdpmon/userspace/agent/config"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	coordinator "github.com/xdpmon/xdpmon/userspace/coordinator/config"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm logs that dashboards and rules are links into deploy/
	testutil.Main(m)
}

func folder(t *testing.T) string { return filepath.Join(testutil.Root(t), "deploy/helm/xdpmon") }

// values are the chart's three sets: its defaults, agents that Prometheus scrapes, and everything.
func values(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{"values.yaml": {}}
	files, err := filepath.Glob(filepath.Join(folder(t), "examples/*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples of values: %v", len(files), err)
	}
	for _, file := range files {
		v, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = v
	}
	return all
}

// render makes the documents of a set of values, by kind and name.
func render(t *testing.T, set map[string]any) map[string][]byte {
	t.Helper()
	c, err := loader.Load(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := chartutil.ToRenderValues(c, set, chartutil.ReleaseOptions{Name: "xdpmon", Namespace: "monitoring", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Engine{Strict: true}.Render(c, v)
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string][]byte{}
	for path, text := range files {
		if strings.HasSuffix(path, "NOTES.txt") {
			continue
		}
		for _, doc := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
			var head struct {
				meta.TypeMeta
				Metadata meta.ObjectMeta
			}
			if strings.TrimSpace(doc) == "" {
				continue
			}
			if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, doc)
			}
			name := head.Kind + "/" + head.Metadata.Name
			if documents[name] != nil || head.Metadata.Labels["app.kubernetes.io/instance"] != "xdpmon" {
				t.Errorf("%s is there twice, or not labelled", name)
			}
			documents[name] = []byte(doc)
		}
	}
	return documents
}

// typed are Kubernetes' own types, and those of the Prometheus operator as far as the chart uses them: an unknown key is an error.
func typed(kind string) any {
	switch kind {
	case "DaemonSet":
		return &apps.DaemonSet{}
	case "StatefulSet":
		return &apps.StatefulSet{}
	case "ConfigMap":
		return &core.ConfigMap{}
	case "Service":
		return &core.Service{}
	case "ServiceAccount":
		return &core.ServiceAccount{}
	case "NetworkPolicy":
		return &networking.NetworkPolicy{}
	case "ServiceMonitor":
		return &serviceMonitor{}
	case "PodMonitor":
		return &podMonitor{}
	case "PrometheusRule":
		return &prometheusRule{}
	}
	return nil
}

// Lint has nothing to say, errors or warnings, whatever the values.
func TestLint(t *testing.T) {
	for name, set := range values(t) {
		for _, m := range lint.All(folder(t), set, "monitoring", true).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// Every document decodes strictly into its type.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for name, set := range values(t) {
		for what, doc := range render(t, set) {
			kind, _, _ := strings.Cut(what, "/")
			into := typed(kind)
			if into == nil {
				t.Errorf("%s: no type is known for %s", name, what)
				continue
			}
			if err := yaml.UnmarshalStrict(doc, into); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, what, err, doc)
			}
			seen[kind] = true
		}
	}
	if len(seen) != 9 {
		t.Errorf("only these kinds were rendered: %v", seen)
	}
}

func decode[T any](t *testing.T, documents map[string][]byte, name string) *T {
	t.Helper()
	into := new(T)
	if documents[name] == nil {
		t.Fatalf("%s is not rendered", name)
	}
	if err := yaml.UnmarshalStrict(documents[name], into); err != nil {
		t.Fatal(err)
	}
	return into
}

// The programs take the configurations that are rendered.
func TestConfigurations(t *testing.T) {
	for name, set := range values(t) {
		documents := render(t, set)
		if _, err := agent.Parse("agent.yaml", []byte(decode[core.ConfigMap](t, documents, "ConfigMap/xdpmon").Data["agent.yaml"])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if documents["StatefulSet/xdpmon-coordinator"] == nil {
			continue
		}
		if _, err := coordinator.Parse("coordinator.yaml", []byte(decode[core.ConfigMap](t, documents, "ConfigMap/xdpmon-coordinator").Data["coordinator.yaml"])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Agents have the three capabilities of docs/agent.md, coordinators none, and neither a token of Kubernetes.
func TestPrivileges(t *testing.T) {
	for name, set := range values(t) {
		documents := render(t, set)
		d := decode[apps.DaemonSet](t, documents, "DaemonSet/xdpmon").Spec.Template.Spec
		confined(t, name, &d, []core.Capability{"BPF", "PERFMON", "NET_ADMIN"})
		if !d.HostNetwork {
			t.Errorf("%s: agents are not on the node's network", name)
		}
		if documents["StatefulSet/xdpmon-coordinator"] == nil {
			continue
		}
		s := decode[apps.StatefulSet](t, documents, "StatefulSet/xdpmon-coordinator").Spec.Template.Spec
		confined(t, name, &s, nil)
		if s.HostNetwork || s.HostPID {
			t.Errorf("%s: the coordinator shares the node's network or processes", name)
		}
	}
}

func confined(t *testing.T, name string, pod *core.PodSpec, want []core.Capability) {
	t.Helper()
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("%s: a token is mounted", name)
	}
	mounts := map[string]bool{}
	for _, v := range pod.Volumes {
		mounts[v.Name] = true
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.Privileged != nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Fatalf("%s: %s is not confined: %+v", name, c.Name, s)
		}
		if !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || !slices.Equal(s.Capabilities.Add, want) {
			t.Errorf("%s: %s has capabilities %v, want %v", name, c.Name, s.Capabilities, want)
		}
		for _, m := range c.VolumeMounts {
			if !mounts[m.Name] && m.Name != "state" {
				t.Errorf("%s: %s mounts %s, which is no volume", name, c.Name, m.Name)
			}
		}
	}
}

// Dashboards and rules of the chart are those of deploy/.
func TestFiles(t *testing.T) {
	documents := render(t, values(t)["everything.yaml"])
	boards, err := filepath.Glob(filepath.Join(testutil.Root(t), "deploy/grafana/*.json"))
	if err != nil || len(boards) == 0 {
		t.Fatalf("%d dashboards: %v", len(boards), err)
	}
	for _, board := range boards {
		name := "ConfigMap/xdpmon-" + strings.TrimPrefix(strings.TrimSuffix(filepath.Base(board), ".json"), "xdpmon-")
		want, err := os.ReadFile(board)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode[core.ConfigMap](t, documents, name).Data[filepath.Base(board)]; got != string(want) {
			t.Errorf("%s is not %s", name, board)
		}
	}
	if len(decode[prometheusRule](t, documents, "PrometheusRule/xdpmon").Spec.Groups) != 2 {
		t.Error("rules are missing")
	}
}

// TestPlainManifests: deploy/kubernetes decodes as strictly.
func TestPlainManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testutil.Root(t), "deploy/kubernetes/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d manifests: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range bytes.Split(text, []byte("\n---\n")) {
			if err := strictly(doc); err != nil && err != io.EOF {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func strictly(doc []byte) error {
	var head meta.TypeMeta
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	into := typed(head.Kind)
	if head.Kind == "Namespace" {
		into = &core.Namespace{}
	}
	if into == nil {
		return fmt.Errorf("no type is known for %q", head.Kind)
	}
	return yaml.UnmarshalStrict(doc, into)
}
