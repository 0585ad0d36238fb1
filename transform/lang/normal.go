package lang

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// removedSecret replaces secrets in the normalised text.
const removedSecret = "${REMOVED}"

// normalize returns the YAML of a mapping file without comments, layout and secrets in clear.
// Except for these secrets it parses to the same mapping. It changes the nodes.
func normalize(root *yaml.Node) ([]byte, error) {
	removeLayout(root)
	if root.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(root.Content); i += 2 {
			if root.Content[i].Value == "secrets" {
				removeSecrets(yamlfile.Resolve(root.Content[i+1]))
			}
		}
	}
	text, err := yaml.Dump(root)
	if err != nil {
		return nil, fmt.Errorf("write mapping: %w", err)
	}
	return text, nil
}

// removeLayout removes comments and style from a node and all nodes below it.
func removeLayout(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment, n.Style = "", "", "", 0
	for _, c := range n.Content {
		removeLayout(c)
	}
}

// removeSecrets replaces the values that are not references to the environment.
func removeSecrets(n *yaml.Node) {
	for i := 1; i < len(n.Content); i += 2 {
		if v := yamlfile.Resolve(n.Content[i]); v.Kind != yaml.ScalarNode || !strings.HasPrefix(v.Value, "${") {
			n.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: removedSecret}
		}
	}
}
