package lang

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// removedSecret stands in a normalised text where a secret stood in the file.
const removedSecret = "${REMOVED}"

// normalize writes a mapping file anew, without comments, layout, and the secrets that stand in it. Read back, it says
// the same. It changes the nodes.
func normalize(root *yaml.Node) ([]byte, error) {
	plain(root)
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

// plain takes comments and layout off a node and all below it.
func plain(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment, n.Style = "", "", "", 0
	for _, c := range n.Content {
		plain(c)
	}
}

func removeSecrets(n *yaml.Node) {
	for i := 1; i < len(n.Content); i += 2 {
		if v := yamlfile.Resolve(n.Content[i]); v.Kind != yaml.ScalarNode || !strings.HasPrefix(v.Value, "${") {
			n.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: removedSecret}
		}
	}
}
