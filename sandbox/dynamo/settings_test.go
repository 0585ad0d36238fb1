package dynamo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// recovery returns the period of a table's point-in-time recovery in days, and how far back it
// reaches.
func (r *rig) recovery(name string) (days int, reach time.Duration) {
	r.t.Helper()
	var out struct {
		ContinuousBackupsDescription struct {
			PointInTimeRecoveryDescription struct {
				RecoveryPeriodInDays       int
				EarliestRestorableDateTime float64
			}
		}
	}
	body := r.do("DescribeContinuousBackups", `{'TableName':'`+name+`'}`)
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		r.t.Fatal(err)
	}
	d := out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
	return d.RecoveryPeriodInDays, r.clock.Now().Sub(time.UnixMilli(int64(d.EarliestRestorableDateTime * 1000)))
}

// TestPeriodOfPointInTimeRecovery: source: ack-api-quirks, services/dynamodb, DDB-TABLE-084.
func TestPeriodOfPointInTimeRecovery(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	set := func(more string) string {
		return `{'TableName':'ttt','PointInTimeRecoverySpecification':{'PointInTimeRecoveryEnabled':` + more + `}}`
	}
	const at = "at 'pointInTimeRecoverySpecification.recoveryPeriodInDays' failed to satisfy constraint: Member must " +
		"have value "
	r.refuses(t, []refusal{
		{"36 days", "UpdateContinuousBackups", set("true,'RecoveryPeriodInDays':36"), "ValidationException",
			"1 validation error detected: Value '36' " + at + "less than or equal to 35", ackLab + "DDB-TABLE-084"},
		{"0 days", "UpdateContinuousBackups", set("true,'RecoveryPeriodInDays':0"), "ValidationException",
			"1 validation error detected: Value '0' " + at + "greater than or equal to 1",
			awsAPI + "API_PointInTimeRecoverySpecification.html"},
		{"off with days", "UpdateContinuousBackups", set("false,'RecoveryPeriodInDays':7"), "ValidationException",
			"Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.",
			ackLab + "DDB-TABLE-084"},
	})
	for _, c := range []struct {
		spec string
		want int
	}{
		{"true", 35}, {"true,'RecoveryPeriodInDays':7", 7}, {"false", 0}, {"true", 35}, {"true,'RecoveryPeriodInDays':1", 1},
	} {
		r.do("UpdateContinuousBackups", set(c.spec))
		if days, _ := r.recovery("ttt"); days != c.want {
			t.Errorf("%s: %d days, want %d", c.spec, days, c.want)
		}
	}
	r.clock.Advance(72 * time.Hour)
	if _, reach := r.recovery("ttt"); reach < 24*time.Hour || reach > 25*time.Hour {
		t.Errorf("reaches back %v, want a day", reach)
	}
}

// tagList returns tags with the keys from k0 on.
func tagList(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{'Key':'k%d','Value':'v'}`, i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

const tableARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"

func TestTagsThatTheServiceRefuses(t *testing.T) {
	r := newRig(t)
	r.indexed("ttt")
	const (
		tooMany = "Number of Tags exceed the current limit for the provided ResourceArn"
		invalid = "One or more parameter values were invalid: "
		one     = `[{'Key':'a','Value':'b'}]`

		dynalite = "https://github.com/architect/dynalite/blob/main/test/"
	)
	tag := func(arn, tags string) string { return `{'ResourceArn':'` + arn + `','Tags':` + tags + `}` }
	untag := func(keys string) string { return `{'ResourceArn':'` + tableARN + `ttt','TagKeys':[` + keys + `]}` }
	long, wide := strings.Repeat("k", 129), strings.Repeat("v", 257)
	all := []refusal{
		{"create with 51", "CreateTable", strings.Replace(withIndex("new", "ALL", "g:HASH"), "{", `{'Tags':`+tagList(51)+`,`,
			1), "ValidationException", tooMany, ackLab + "DDB-TABLE-442"},
		{"51", "TagResource", tag(tableARN+"ttt", tagList(51)), "ValidationException", tooMany, ackLab + "DDB-TABLE-108"},
		{"51 to remove", "UntagResource", untag(strings.TrimSuffix(strings.Repeat("'k',", 51), ",")), "ValidationException",
			tooMany, ackLab + "DDB-TABLE-107"},
		{"long key", "TagResource", tag(tableARN+"ttt", `[{'Key':'`+long+`','Value':''}]`), "ValidationException",
			"The Tag Key provided is invalid, Key: " + long, ackLab + "DDB-TABLE-107"},
		{"long key to remove", "UntagResource", untag(`'` + long + `'`), "ValidationException",
			"The Tag Key provided is invalid, Key: " + long, ackLab + "DDB-TABLE-107"},
		{"empty key", "TagResource", tag(tableARN+"ttt", `[{'Key':'','Value':'b'}]`), "ValidationException",
			"The Tag Key provided is invalid, Key: ", ackLab + "DDB-TABLE-107"},
		{"no key", "TagResource", tag(tableARN+"ttt", `[{'Value':'b'}]`), "ValidationException",
			"The Tag Key provided is invalid, Key: null", ackLab + "DDB-TABLE-457"},
		{"no value", "TagResource", tag(tableARN+"ttt", `[{'Key':'a'}]`), "ValidationException",
			"The Tag Value provided is invalid, Value: null", ackLab + "DDB-TABLE-107"},
		{"long value", "TagResource", tag(tableARN+"ttt", `[{'Key':'a','Value':'`+wide+`'}]`), "ValidationException",
			"The Tag Value provided is invalid, Value: " + wide, ackLab + "DDB-TABLE-107"},
		{"reserved", "TagResource", tag(tableARN+"ttt", `[{'Key':'aws:z','Value':'b'}]`), "ValidationException",
			"Tag Key cannot be prefixed with aws:, Key: aws:z", ackLab + "DDB-TABLE-107"},
		{"key twice", "TagResource", tag(tableARN+"ttt", `[{'Key':'a','Value':'b'},{'Key':'a','Value':'c'}]`),
			"ValidationException", "Duplicate Tag Keys provided as input: Duplicate Tag Key found a", ackLab + "DDB-TABLE-107"},
		{"no tags", "TagResource", tag(tableARN+"ttt", `[]`), "ValidationException",
			"Atleast one Tag needs to be provided as Input.", ackLab + "DDB-TABLE-107"},
		{"no ARN", "ListTagsOfResource", `{}`, "ValidationException", "Invalid TableArn", dynalite + "listTagsOfResource.js"},
		{"no ARN for tags", "TagResource", `{}`, "ValidationException", "Invalid TableArn", dynalite + "tagResource.js"},
		{"no ARN for keys", "UntagResource", `{}`, "ValidationException", "Invalid TableArn", dynalite + "untagResource.js"},
		{"tags missing", "TagResource", `{'ResourceArn':'a:b:c:d:e:f/g'}`, "ValidationException",
			"1 validation error detected: Value null at 'tags' failed to satisfy constraint: Member must not be null",
			dynalite + "tagResource.js"},
		{"keys missing", "UntagResource", `{'ResourceArn':'a:b:c:d:e:f/g'}`, "ValidationException",
			"1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: Member must not be null",
			dynalite + "untagResource.js"},
		{"ARN before the tags", "TagResource", tag(tableARN+"ab", `[]`), "ValidationException",
			"Invalid TableArn: Invalid ResourceArn provided as input " + tableARN + "ab", dynalite + "tagResource.js"},
		{"tags before the table", "TagResource", tag(tableARN+"none", `[]`), "ValidationException",
			"Atleast one Tag needs to be provided as Input.", dynalite + "tagResource.js"},
		{"no ARN at all", "ListTagsOfResource", `{'ResourceArn':'I_do_not_exist'}`, "ValidationException",
			invalid + "ARNs must start with 'arn:': I_do_not_exist", ackLab + "DDB-TABLE-442"},
		{"ARN of another service", "ListTagsOfResource", `{'ResourceArn':'arn:aws:s3:::b'}`, "ValidationException",
			invalid + "Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::b", ackLab + "DDB-TABLE-442"},
		{"ARN of another region", "ListTagsOfResource", `{'ResourceArn':'arn:aws:dynamodb:eu-west-1:000000000000:table/ttt'}`,
			"ValidationException", "Invalid TableArn: Invalid ResourceArn provided as input " +
				"arn:aws:dynamodb:eu-west-1:000000000000:table/ttt", ackLab + "DDB-TABLE-442"},
		{"no such table", "TagResource", tag(tableARN+"none", one), "ResourceNotFoundException",
			"Requested resource not found: ResourcArn: " + tableARN + "none not found",
			dynalite + "tagResource.js"},
	}
	for _, text := range []string{"100%", "a,b", "(x)", "a&b", "a*b", "a;b", "a?b", "a|b", "<a>", "~a", "\U0001f511"} {
		all = append(all, refusal{"value " + text, "TagResource", tag(tableARN+"ttt", `[{'Key':'a','Value':'`+text+`'}]`),
			"ValidationException", "The Tag Value provided is invalid, Value: " + text, ackLab + "DDB-TABLE-372"})
	}
	for _, op := range []string{"ListTagsOfResource", "TagResource"} {
		for _, index := range []string{"ggg", "lll"} {
			arn := tableARN + "ttt/index/" + index
			all = append(all, refusal{op + " of index " + index, op, tag(arn, one), "ValidationException",
				invalid + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " + arn,
				ackLab + "DDB-TABLE-442; " + scylla + "test_tag.py: test_tag_lsi_gsi"})
		}
	}
	r.refuses(t, all)
	r.want(r.do("ListTagsOfResource", `{'ResourceArn':'`+tableARN+`ttt'}`), `{'Tags':[]}`)
}

// TestTagsAreCountedInCharacters: source: scylladb/scylladb, test/alternator/test_tag.py, and
// ack-api-quirks, DDB-TABLE-108 and DDB-TABLE-372.
func TestTagsAreCountedInCharacters(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	tag := func(tags string) answer {
		return r.raw("TagResource", quotes(`{'ResourceArn':'`+tableARN+`ttt','Tags':`+tags+`}`))
	}
	for _, tags := range []string{tagList(50), `[{'Key':'k7','Value':'new'}]`} {
		if a := tag(tags); a.Code != "" {
			t.Errorf("%.50s: %s: %s", tags, a.Code, a.Message)
		}
	}
	if a := tag(`[{'Key':'k7','Value':'x'},{'Key':'one more','Value':''}]`); a.Code != "ValidationException" ||
		a.Message != "Number of Tags exceed the current limit for the provided ResourceArn" {
		t.Errorf("51 tags in all: %s: %s", a.Code, a.Message)
	}
	r.do("UntagResource", `{'ResourceArn':'`+tableARN+`ttt','TagKeys':['k0','k1','k2']}`)
	for key, value := range map[string]string{strings.Repeat("א", 128): strings.Repeat("א", 256), "ключ": "café 表",
		"a+b-c=d.e_f:g/h@i": ""} {
		if a := tag(`[{'Key':'` + key + `','Value':'` + value + `'}]`); a.Code != "" {
			t.Errorf("%.20s: %s: %.80s", key, a.Code, a.Message)
		}
	}
}
