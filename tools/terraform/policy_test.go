package terraform

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// run runs the program under test ($REPLICATOR) in a directory and returns what it prints.
func run(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	program := os.Getenv("REPLICATOR")
	if program == "" {
		program = "../../bin/replicator"
	}
	path, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=key")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.String())
	}
	return out
}

// configured writes a configuration into a directory of its own.
func configured(t *testing.T, config string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tailrace.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func texts(all ...string) cty.Value {
	values := []cty.Value{}
	for _, s := range all {
		values = append(values, cty.StringVal(s))
	}
	return cty.TupleVal(values)
}

func object(pairs ...string) cty.Value {
	values := map[string]cty.Value{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = cty.StringVal(pairs[i+1])
	}
	return cty.ObjectVal(values)
}

// TestPolicyIsThatOfCheck: for each configuration the module gives the role the statements that
// `replicator check` prints, and no other.
func TestPolicyIsThatOfCheck(t *testing.T) {
	const head = "pipeline: shop\nsource: {region: eu-west-1}\nbigtable: {project: acme, instance: main}\n" +
		"queue: {dir: ./log}\ntables:\n"
	exports := func(ask bool) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"bucket": cty.StringVal("exports"), "prefix": cty.StringVal("daily/"), "ask": cty.BoolVal(ask),
		})
	}
	for name, c := range map[string]struct {
		config string
		values map[string]cty.Value
	}{
		"a whole bucket": {
			head + "- {source: Sessions, archive: {}}\narchive: {url: \"s3://kept\"}\n",
			map[string]cty.Value{
				"tables": cty.EmptyTupleVal, "archived_tables": texts("Sessions"), "archive": object("bucket", "kept", "prefix", "/"),
			},
		},
		"two tables": {
			head + "- {source: Carts, target: carts}\n- {source: Orders, target: orders}\n",
			map[string]cty.Value{"tables": texts("Carts", "Orders")},
		},
		"an archive": {
			head + "- {source: Carts, target: carts, on_ttl_expiry: archive}\n- {source: Sessions, archive: {}}\n" +
				"archive: {url: \"s3://kept/some/prefix?region=eu-west-1\"}\n",
			map[string]cty.Value{
				"tables": texts("Carts"), "archived_tables": texts("Sessions"),
				"archive": object("bucket", "kept", "prefix", "some/prefix"),
			},
		},
		"an export that is there": {
			head + "- {source: Carts, target: carts, backfill: {from: export, url: \"s3://exports/daily\"}}\n",
			map[string]cty.Value{"tables": texts("Carts"), "exported_tables": texts("Carts"), "exports": exports(false)},
		},
		"an export that is asked for": {
			head + "- {source: Carts, target: carts, backfill: {from: export, bucket: exports, prefix: daily}}\n",
			map[string]cty.Value{"tables": texts("Carts"), "exported_tables": texts("Carts"), "exports": exports(true)},
		},
		"heartbeats": {
			head + "- {source: Carts, target: carts, heartbeat: {write: true, prefix: \"_tailrace#\"}}\n",
			map[string]cty.Value{"tables": texts("Carts"), "heartbeats": object("Carts", "_tailrace#")},
		},
		"selections": {
			head + "- {source: \"orders-*\", target: \"{table}\"}\n- {tag: {team: shop}, target: \"shop-{table}\"}\n",
			map[string]cty.Value{
				"tables": texts("orders-*", "*"), "tagged_tables": texts("*"), "list_tables": cty.True,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.values["aws_region"] = cty.StringVal("eu-west-1")
			var report struct {
				Policies struct{ AWS any }
			}
			text := run(t, configured(t, c.config), "check", "--offline", "--json")
			if err := json.Unmarshal(text, &report); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(statements(report.Policies.AWS), statements(asJSON(t, own(t).evaluate(t, "policy", c.values)))); diff != "" {
				t.Errorf("-check +module:\n%s", diff)
			}
		})
	}
}

// statements returns the statements of a policy as texts, in an order of their own.
func statements(policy any) (all []string) {
	p, _ := policy.(map[string]any)
	list, _ := p["Statement"].([]any)
	for _, s := range list {
		text, _ := json.Marshal(s) // what was just decoded can be encoded
		all = append(all, string(text))
	}
	slices.Sort(all)
	return append(all, p["Version"].(string))
}

// TestRolesAreThoseOfCheck: the roles of the replicator, and apart from them those of schema --apply.
func TestRolesAreThoseOfCheck(t *testing.T) {
	var report struct {
		Policies struct{ Google []struct{ For, Role string } }
	}
	text := run(t, configured(t, "pipeline: shop\nsource: {region: eu-west-1}\nbigtable: {project: acme, instance: main}\n"+
		"queue: {dir: ./log}\ntables: [{source: Carts, target: carts}]\n"), "check", "--offline", "--json")
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	replicator, schema := []any{}, []any{}
	for _, b := range report.Policies.Google {
		if b.For == "schema --apply" {
			schema = append(schema, b.Role)
		} else {
			replicator = append(replicator, b.Role)
		}
	}
	m := own(t)
	for local, want := range map[string][]any{"replicator_roles": replicator, "schema_roles": schema} {
		if diff := cmp.Diff(any(want), asJSON(t, m.evaluate(t, local, nil))); diff != "" || len(want) == 0 {
			t.Errorf("%s: -check +module:\n%s", local, diff)
		}
	}
}

// TestTrust: a token of the cluster's service account, and the services that are named, no other.
func TestTrust(t *testing.T) {
	m := own(t)
	none := asJSON(t, m.evaluate(t, "trust", nil)).(map[string]any)["Statement"].([]any)
	if len(none) != 0 {
		t.Errorf("without a cluster and services the role trusts %v", none)
	}
	got := asJSON(t, m.evaluate(t, "trust", map[string]cty.Value{
		"oidc": object("provider_arn", "arn:aws:iam::1:oidc-provider/oidc.eks.example/id/A", "issuer", "oidc.eks.example/id/A",
			"namespace", "data", "service_account", "shop-tailrace"),
		"trusted_services": texts("pods.eks.amazonaws.com"),
	}))
	want := map[string]any{"Version": "2012-10-17", "Statement": []any{
		map[string]any{
			"Effect": "Allow", "Action": []any{"sts:AssumeRoleWithWebIdentity"},
			"Principal": map[string]any{"Federated": "arn:aws:iam::1:oidc-provider/oidc.eks.example/id/A"},
			"Condition": map[string]any{"StringEquals": map[string]any{
				"oidc.eks.example/id/A:sub": "system:serviceaccount:data:shop-tailrace",
				"oidc.eks.example/id/A:aud": "sts.amazonaws.com",
			}},
		},
		map[string]any{
			"Effect": "Allow", "Action": []any{"sts:AssumeRole", "sts:TagSession"},
			"Principal": map[string]any{"Service": []any{"pods.eks.amazonaws.com"}},
		},
	}}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
