package preflight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/host"
)

// Policies are the least permissions that run, check and the commands beside them need in both
// clouds. docs/credentials.md prints the same statements; a test compares them.
type Policies struct {
	AWS    Policy     `json:"aws"`
	Google []Bindings `json:"google"`
}

// Policy is an IAM policy of AWS.
type Policy struct {
	Version   string
	Statement []Statement
}

// Statement is one statement of a Policy.
type Statement struct {
	Effect   string
	Action   []string
	Resource []string
	// Condition narrows the statement, by operator and key.
	Condition map[string]map[string][]string `json:",omitempty"`
}

// Bindings is a role that Google Cloud must grant, and the command that grants it.
type Bindings struct {
	For     string `json:"for"`
	Role    string `json:"role"`
	Command string `json:"command"`
}

// policies returns the permissions that a configuration needs. arns holds the ARN of each table
// that is known; the others have the placeholder ACCOUNT in theirs.
func policies(cfg *config.Config, arns map[string]string) *Policies {
	p := Policy{Version: "2012-10-17"}
	var tables, archived, streams, exported, exports []string
	var places, heartbeats []Statement
	partition := host.Partition(cfg.Source.Region)
	var tagged []string
	for _, t := range entries(cfg) {
		arn := cmp.Or(t.ARN, arnOf(cfg, t.Source, arns))
		if len(t.Tag) > 0 {
			tagged = append(tagged, arn)
		}
		streams = append(streams, arn+"/stream/*")
		if t.ArchivedOnly() {
			archived = append(archived, arn)
		} else {
			tables = append(tables, arn)
		}
		if h := &t.Heartbeat; h.Write {
			heartbeats = append(heartbeats, writeHeartbeats(arn, h))
		}
		b := &t.Backfill
		switch {
		case b.Bucket != "":
			exported, exports = append(exported, arn), append(exports, arn+"/export/*")
			places = append(places, writeExport(partition, b.Bucket, b.Prefix))
			places = append(places, readExport(partition, b.Bucket, b.Prefix)...)
		case b.URL != "":
			exports = append(exports, arn+"/export/*") // whether it is whole
			if u, err := url.Parse(b.URL); err == nil && u.Scheme == "s3" {
				places = append(places, readExport(partition, u.Host, u.Path)...)
			}
		}
	}
	p.allow(tables, "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:Scan", "dynamodb:BatchGetItem")
	p.allow(archived, "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive")
	if cfg.Selecting() {
		p.allow([]string{"*"}, "dynamodb:ListTables")
	}
	p.allow(tagged, "dynamodb:ListTagsOfResource")
	p.allow(streams, "dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords")
	p.allow(exported, "dynamodb:ExportTableToPointInTime", "dynamodb:DescribeContinuousBackups")
	p.allow(exports, "dynamodb:DescribeExport")
	places = append(places, keepArchive(partition, &cfg.Archive)...)
	for _, s := range append(heartbeats, places...) {
		if !slices.ContainsFunc(p.Statement, func(x Statement) bool { return fmt.Sprint(x) == fmt.Sprint(s) }) {
			p.Statement = append(p.Statement, s)
		}
	}
	var google []Bindings
	if len(tables) > 0 {
		google = bindings(&cfg.Bigtable)
	}
	return &Policies{AWS: p, Google: append(google, storeBindings(&cfg.Archive)...)}
}

// entries returns the entries of the file: permissions are for all tables that a selection may
// choose, not only for those that it chooses now.
func entries(cfg *config.Config) (all []config.Table) {
	for _, t := range cfg.Tables {
		if !t.Found {
			all = append(all, t)
		}
	}
	for _, s := range cfg.Selections {
		s.Source = cmp.Or(s.Source, "*")
		all = append(all, s)
	}
	return all
}

// arnOf returns the ARN of a table, or of all tables of a pattern: * and ? mean there what they
// mean here.
func arnOf(cfg *config.Config, name string, arns map[string]string) string {
	if arn := arns[name]; arn != "" {
		return arn
	}
	for _, known := range arns {
		if place, _, ok := strings.Cut(known, ":table/"); ok && strings.ContainsAny(name, "*?") {
			return place + ":table/" + name
		}
	}
	region := cfg.Source.Region
	return fmt.Sprintf("arn:%s:dynamodb:%s:ACCOUNT:table/%s", host.Partition(region), region, name)
}

// allow appends a statement, unless it is about nothing.
func (p *Policy) allow(resources []string, actions ...string) {
	if len(resources) > 0 {
		p.Statement = append(p.Statement, Statement{Effect: "Allow", Action: actions, Resource: resources})
	}
}

// writeHeartbeats returns what writing heartbeats takes: of one table, under their partition keys
// alone.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
func writeHeartbeats(arn string, h *config.Heartbeat) Statement {
	operator, keys := "ForAllValues:StringEquals", h.Keys
	if h.Prefix != "" {
		operator, keys = "ForAllValues:StringLike", []string{h.Prefix + "*"}
	}
	return Statement{
		Effect: "Allow", Action: []string{"dynamodb:PutItem"}, Resource: []string{arn},
		Condition: map[string]map[string][]string{operator: {"dynamodb:LeadingKeys": keys}},
	}
}

// writeExport returns what the service needs to write an export that we ask for: it writes with our
// permissions.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport_Requesting.html
func writeExport(partition, bucket, prefix string) Statement {
	return Statement{
		Effect: "Allow", Action: []string{"s3:AbortMultipartUpload", "s3:PutObject", "s3:PutObjectAcl"},
		Resource: []string{objects(partition, bucket, prefix)},
	}
}

// readExport returns what reading an export takes: list the bucket, get the objects.
func readExport(partition, bucket, prefix string) []Statement {
	return []Statement{
		{Effect: "Allow", Action: []string{"s3:GetObject"}, Resource: []string{objects(partition, bucket, prefix)}},
		{Effect: "Allow", Action: []string{"s3:ListBucket"}, Resource: []string{"arn:" + partition + ":s3:::" + bucket}},
	}
}

// objects returns the ARN of all objects of a bucket below a prefix.
func objects(partition, bucket, prefix string) string {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return "arn:" + partition + ":s3:::" + bucket + "/" + prefix + "*"
}

// bindings returns the roles in Google Cloud.
func bindings(b *config.Bigtable) []Bindings {
	bind := func(use, role string) Bindings {
		return Bindings{For: use, Role: role, Command: fmt.Sprintf(
			"gcloud bigtable instances add-iam-policy-binding %s --project=%s --member=MEMBER --role=%s",
			b.Instance, b.Project, role)}
	}
	return []Bindings{
		bind("run and all commands", "roles/bigtable.user"),
		bind("check, schema --diff; run, to watch GC rules and app profile", "roles/bigtable.viewer"),
		bind("schema --apply", "roles/bigtable.admin"),
	}
}

// Text returns the policy as JSON, two lines for each statement, three for one with a condition.
func (p *Policy) Text() string {
	var lines []string
	for _, s := range p.Statement {
		lines = append(lines, s.text())
	}
	return fmt.Sprintf("{\"Version\": %q, \"Statement\": [\n%s\n]}", p.Version, strings.Join(lines, ",\n"))
}

func (s *Statement) text() string {
	condition := ""
	if s.Condition != nil {
		text, _ := json.Marshal(s.Condition) // maps of strings can always be encoded
		condition = ",\n \"Condition\": " + string(text)
	}
	return fmt.Sprintf("{\"Effect\": %q, \"Action\": %s,\n \"Resource\": %s%s}", s.Effect, list(s.Action),
		list(s.Resource), condition)
}

// list returns texts as a JSON array, or as a string where there is one.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		b, _ := json.Marshal(t) // a string can always be encoded
		quoted[i] = string(b)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
