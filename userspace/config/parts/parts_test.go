package parts

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// Without a list there is no rule to point at, but the place where the list should be.
func TestNameNode(t *testing.T) {
	rule := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Value: "kinds"}, {}, {Value: "name"}, {Value: "a"}}}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{rule}}
	if got := NameNode(list, 0); got != rule.Content[3] {
		t.Errorf("%+v", got)
	}
	if got := NameNode(list, 1); got != list {
		t.Errorf("after the list: %+v", got)
	}
	if got := NameNode(rule, 0); got != rule {
		t.Errorf("no list: %+v", got)
	}
}
