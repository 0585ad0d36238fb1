package dynamo_test

import (
	"encoding/json"
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
	const at = "at 'pointInTimeRecoverySpecification.recoveryPeriodInDays' failed to satisfy constraint: Member must have value "
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
	}{{"true", 35}, {"true,'RecoveryPeriodInDays':7", 7}, {"false", 0}, {"true", 35}, {"true,'RecoveryPeriodInDays':1", 1}} {
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
