package tableschema

import (
	"strings"
	"testing"
	"time"
)

// TestResourcesHaveNamesOfTheirOwn: names of tables may differ where names of resources may not.
// tools/terraform reads the rest with HashiCorp's parser.
func TestResourcesHaveNamesOfTheirOwn(t *testing.T) {
	text := Terraform("p", "i", Tables([]Table{{Name: "a-b"}, {Name: "a.b"}, {Name: "a.b__tr_dead"}}, time.Hour))
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "resource ") {
			continue
		}
		if names[line] {
			t.Errorf("twice: %s", line)
		}
		names[line] = true
	}
	if len(names) != 4+7 { // tables; rules of _tr_live, _tr_dead and the state's family
		t.Errorf("%d resources in\n%s", len(names), text)
	}
}
