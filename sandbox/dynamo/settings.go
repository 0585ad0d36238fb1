package dynamo

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Time to live, continuous backups and tags: the settings of a table that are not in its
// definition.

// updateTimeToLive enables or disables time to live; the change is immediate.
func (s *Server) updateTimeToLive(r *call) ([]byte, *wire.Error) {
	spec := r.Get("TimeToLiveSpecification")
	name, on := spec.Str("AttributeName"), spec.True("Enabled")
	t, err := s.findAny(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.Lock()
	defer t.Unlock()
	switch d := &t.Def; {
	case on && d.TTLOn && d.TTLAttribute != name:
		return nil, wire.Invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s",
			d.TTLAttribute)
	case on && d.TTLOn:
		return nil, wire.Invalid("TimeToLive is already enabled")
	case !on && !d.TTLOn:
		return nil, wire.Invalid("TimeToLive is already disabled")
	case !on && d.TTLAttribute != name:
		return nil, wire.Invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s",
			d.TTLAttribute)
	}
	t.Def.TTLAttribute, t.Def.TTLOn = strings.Clone(name), on
	t.Items.SetTTL(map[bool]string{true: t.Def.TTLAttribute}[on])
	b := append(wire.AppendField([]byte{'{'}, "TimeToLiveSpecification"), '{')
	b = wire.AppendBool(b, "Enabled", on)
	return append(wire.AppendText(b, "AttributeName", name), '}', '}'), nil
}

// describeTimeToLive returns a table's time-to-live setting.
func (s *Server) describeTimeToLive(r *call) ([]byte, *wire.Error) {
	t, err := s.findAny(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.RLock()
	defer t.RUnlock()
	b := append(wire.AppendField([]byte{'{'}, "TimeToLiveDescription"), '{')
	if !t.Def.TTLOn {
		return append(wire.AppendText(b, "TimeToLiveStatus", "DISABLED"), '}', '}'), nil
	}
	b = wire.AppendText(b, "TimeToLiveStatus", "ENABLED")
	return append(wire.AppendText(b, "AttributeName", t.Def.TTLAttribute), '}', '}'), nil
}

// ExpireNow deletes the items that have expired at now, as the service's sweep does, and returns
// their number. Items that expired more than five years ago stay.
func (s *Server) ExpireNow(now time.Time) int {
	n := 0
	for _, t := range s.all() {
		n += s.expire(t, now)
	}
	return n
}

// expire is ExpireNow for one table.
func (s *Server) expire(t *table.Table, now time.Time) int {
	t.Lock()
	defer t.Unlock()
	if t.Gone {
		return 0
	}
	due := t.Items.Expired(now)
	for _, r := range due {
		c := changeOf(t, r, nil, r.Item())
		c.TTL = true
		t.Items.Delete(r)
		s.remember(t, r.Key, r, nil)
		s.o.Stream.Commit(c)
	}
	return len(due)
}

// describeBackups answers DescribeContinuousBackups.
func (s *Server) describeBackups(r *call) ([]byte, *wire.Error) {
	t, err := s.findBackups(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.RLock()
	defer t.RUnlock()
	return s.backups(t), nil
}

// findBackups is findAny with the error that the operations on backups have.
func (s *Server) findBackups(name string) (*table.Table, *wire.Error) {
	t, err := s.findAny(name)
	if err != nil {
		return nil, &wire.Error{Code: "TableNotFoundException", Message: "Table not found: " + name}
	}
	return t, nil
}

// backups returns a reply with a ContinuousBackupsDescription. The caller holds the table's lock.
func (s *Server) backups(t *table.Table) []byte {
	b := append(wire.AppendField([]byte{'{'}, "ContinuousBackupsDescription"), '{')
	b = wire.AppendText(b, "ContinuousBackupsStatus", "ENABLED")
	b = append(wire.AppendField(b, "PointInTimeRecoveryDescription"), '{')
	if !t.Def.PointInTime {
		return append(wire.AppendText(b, "PointInTimeRecoveryStatus", "DISABLED"), '}', '}', '}')
	}
	b = wire.AppendText(b, "PointInTimeRecoveryStatus", "ENABLED")
	b = wire.AppendInt(b, "RecoveryPeriodInDays", cmp.Or(t.Def.RecoveryDays, recoveryDays))
	now := s.o.Clock.Now()
	earliest, _ := earliestRestorable(t, now)
	b = table.AppendTime(b, "EarliestRestorableDateTime", earliest)
	latest := now.Add(-latestBehind)
	if latest.Before(earliest) {
		latest = earliest
	}
	return append(table.AppendTime(b, "LatestRestorableDateTime", latest), '}', '}', '}')
}

// latestBehind is how far LatestRestorableDateTime is behind the present. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PointInTimeRecoveryDescription.html
const latestBehind = 5 * time.Minute

// updateBackups enables or disables point-in-time recovery. While it is enabled the table remembers
// its past.
func (s *Server) updateBackups(r *call) ([]byte, *wire.Error) {
	t, err := s.findBackups(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.Lock()
	defer t.Unlock()
	spec := r.Get("PointInTimeRecoverySpecification")
	on := spec.True("PointInTimeRecoveryEnabled")
	days, sent := spec.Int("RecoveryPeriodInDays")
	switch {
	case !on && sent:
		return nil, wire.Invalid("Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time " +
			"recovery.")
	case on && !t.Def.PointInTime:
		t.ForgetPast() // what was remembered for lagging reads
		t.KeepPast(s.o.Clock.Now())
	case !on:
		t.ForgetPast()
	}
	t.Def.PointInTime = on
	if t.Def.RecoveryDays = days; days == recoveryDays {
		t.Def.RecoveryDays = 0
	}
	return s.backups(t), nil
}

// checkTagged checks the ARN in the request's ResourceArn, but not that there is its table, and that
// a parameter of the request is there. Source of the order: architect/dynalite,
// test/tagResource.js.
func (s *Server) checkTagged(r *call, parameter string) *wire.Error {
	arn := r.Str("ResourceArn")
	parts := strings.SplitN(arn, ":", 6)
	switch {
	case !r.Has("ResourceArn"):
		return wire.Invalid("Invalid TableArn")
	case parameter != "" && !r.Has(parameter):
		return wire.Invalid("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not "+
			"be null", strings.ToLower(parameter[:1])+parameter[1:])
	case parts[0] != "arn":
		return wire.BadValue("ARNs must start with 'arn:': %s", arn)
	case len(parts) < 6 || parts[2] != "dynamodb":
		return wire.BadValue("Provided Arn is not a DynamoDB resource arn: %s", arn)
	case !strings.HasPrefix(parts[5], "table/") || strings.Contains(parts[5], "/index/"):
		return wire.BadValue("Invalid resource arn provided, only table or stream is accepted. Provided resource "+
			"arn: %s", arn)
	case parts[3] != s.o.Region || len(tableOf(arn)) < 3:
		return wire.Invalid("Invalid TableArn: Invalid ResourceArn provided as input %s", arn)
	}
	return nil
}

// tagged returns the table with the ARN in the request's ResourceArn.
func (s *Server) tagged(r *call) (*table.Table, *wire.Error) {
	arn := r.Str("ResourceArn")
	name := tableOf(arn)
	s.mu.RLock()
	t := s.tables[name]
	s.mu.RUnlock()
	if t == nil || s.arn(name) != arn {
		return nil, &wire.Error{Code: "ResourceNotFoundException",
			Message: "Requested resource not found: ResourcArn: " + arn + " not found"}
	}
	return t, nil
}

// tagResource adds tags, and replaces those with the same keys.
func (s *Server) tagResource(r *call) ([]byte, *wire.Error) {
	if err := s.checkTagged(r, "Tags"); err != nil {
		return nil, err
	}
	add, err := table.ReadTags(r.Get("Tags"))
	if err != nil {
		return nil, err
	}
	if len(add) == 0 {
		return nil, wire.Invalid("Atleast one Tag needs to be provided as Input.")
	}
	t, err := s.tagged(r)
	if err != nil {
		return nil, err
	}
	t.Lock()
	defer t.Unlock()
	return nil, t.Def.AddTags(add)
}

// untagResource removes tags by their keys.
func (s *Server) untagResource(r *call) ([]byte, *wire.Error) {
	if err := s.checkTagged(r, "TagKeys"); err != nil {
		return nil, err
	}
	keys := r.Strings("TagKeys")
	if len(keys) == 0 {
		return nil, wire.Invalid("Atleast one Tag Key needs to be provided as Input.")
	}
	if err := table.CheckTagKeys(r.Get("TagKeys")); err != nil {
		return nil, err
	}
	t, err := s.tagged(r)
	if err != nil {
		return nil, err
	}
	t.Lock()
	defer t.Unlock()
	t.Def.Tags = slices.DeleteFunc(slices.Clone(t.Def.Tags),
		func(o table.Tag) bool { return slices.Contains(keys, o.Key) })
	return nil, nil
}

// listTags returns all tags of a table.
func (s *Server) listTags(r *call) ([]byte, *wire.Error) {
	if err := s.checkTagged(r, ""); err != nil {
		return nil, err
	}
	t, err := s.tagged(r)
	if err != nil {
		return nil, err
	}
	t.RLock()
	defer t.RUnlock()
	b := append(wire.AppendField([]byte{'{'}, "Tags"), '[')
	for i, tag := range t.Def.Tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(append(b, '{'), "Key", tag.Key)
		b = append(wire.AppendText(b, "Value", tag.Value), '}')
	}
	return append(b, ']', '}'), nil
}
