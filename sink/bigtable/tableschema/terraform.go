package tableschema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/transform"
)

// Terraform returns a Terraform module that makes the tables: variables with the project and the
// instance as defaults, a resource for each table, and one for the rule of each family that has
// one. Nothing that it makes is deleted by `terraform destroy`, or when a table is taken out.
//
// Source: https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/bigtable_table,
// bigtable_gc_policy beside it
func Terraform(project, instance string, tables []Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, terraformHead, hclString(project), hclString(instance))
	resources := map[string]bool{}
	for _, t := range tables {
		writeTable(&b, resourceName(resources, t.Name), t, resources)
	}
	return strings.TrimRight(b.String(), "\n")
}

const terraformHead = `# Written by replicator schema --format terraform: change the mappings instead. Put it into a
# directory of its own, and call it as a module; where no variable has one of its names, it may also stand alone.

terraform {
  required_providers {
    google = { source = "hashicorp/google", version = ">= 6.20" }
  }
}

variable "project" {
  type    = string
  default = %s
}

variable "instance" {
  type    = string
  default = %s
}

variable "relax_gc_rules" {
  description = "Bigtable refuses rules that keep more, where an instance is replicated, unless warnings are ignored."
  type        = bool
  default     = false
}

`

func writeTable(b *strings.Builder, name string, t Table, taken map[string]bool) {
	fmt.Fprintf(b, "resource \"google_bigtable_table\" %q {\n", name)
	fmt.Fprintf(b, "  project             = var.project\n  instance_name       = var.instance\n")
	fmt.Fprintf(b, "  name                = %s\n  deletion_protection = \"PROTECTED\"\n", hclString(t.Name))
	splits, unwritable := hclSplits(t.Splits)
	if len(splits) > 0 {
		fmt.Fprintf(b, "  split_keys          = [%s]\n", strings.Join(splits, ", "))
	}
	if unwritable > 0 {
		fmt.Fprintf(b, "  # without %d split keys that are no text\n", unwritable)
	}
	for _, f := range t.Families {
		fmt.Fprintf(b, "\n  column_family {\n    family = %s\n", hclString(f.Name))
		if kind := typeOf(f); kind != "" {
			fmt.Fprintf(b, "    type   = %s\n", hclString(kind))
		}
		b.WriteString("  }\n")
	}
	b.WriteString("\n  lifecycle {\n    prevent_destroy = true\n")
	b.WriteString("    ignore_changes  = [split_keys] # else the table would be made anew\n  }\n}\n\n")
	for _, f := range t.Families {
		rules := gcRules(f)
		if rules == "" {
			continue
		}
		fmt.Fprintf(b, "resource \"google_bigtable_gc_policy\" %q {\n", resourceName(taken, t.Name+"_"+f.Name))
		fmt.Fprintf(b, "  project         = var.project\n  instance_name   = var.instance\n")
		fmt.Fprintf(b, "  table           = google_bigtable_table.%s.name\n  column_family   = %s\n", name, hclString(f.Name))
		fmt.Fprintf(b, "  gc_rules        = %s\n  ignore_warnings = var.relax_gc_rules\n", hclString(rules))
		b.WriteString("  deletion_policy = \"ABANDON\"\n}\n\n")
	}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]`)

// resourceName returns a name that a resource may have and no other one has.
func resourceName(taken map[string]bool, name string) string {
	name = "t_" + notInNames.ReplaceAllString(name, "_")
	for taken[name] {
		name += "_"
	}
	taken[name] = true
	return name
}

// hclSplits returns the split keys that a text of HCL can hold, and how many it cannot.
func hclSplits(keys [][]byte) (texts []string, unwritable int) {
	for _, key := range keys {
		if transform.Readable(key) != string(key) {
			unwritable++
			continue
		}
		texts = append(texts, hclString(string(key)))
	}
	return texts, unwritable
}

// hclString returns a text as HCL quotes it: as JSON does, and with templates escaped.
func hclString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strings.TrimSuffix(b.String(), "\n"))
}

// gcRules returns the rule of a family as gc_rules of the provider; "" for one that collects
// nothing.
func gcRules(f transform.Family) string {
	top := gcRule(policyOf(f))
	if top == nil {
		return ""
	}
	if top["rules"] == nil {
		top = map[string]any{"rules": []any{top}}
	}
	text, _ := json.Marshal(top) // maps of texts and numbers can always be encoded
	return string(text)
}

func gcRule(p bigtable.GCPolicy) map[string]any {
	all := func(mode string, children []bigtable.GCPolicy) map[string]any {
		var rules []any
		for _, c := range children {
			rules = append(rules, gcRule(c))
		}
		return map[string]any{"mode": mode, "rules": rules}
	}
	switch p := p.(type) {
	case bigtable.MaxVersionsGCPolicy:
		return map[string]any{"max_version": int(p)}
	case bigtable.MaxAgeGCPolicy:
		return map[string]any{"max_age": p.GetDurationString()}
	case bigtable.UnionGCPolicy:
		return all("union", p.Children)
	case bigtable.IntersectionGCPolicy:
		return all("intersection", p.Children)
	}
	return nil
}
