package transform

// limitFamilies refuses more column families than a target table can have, over all mappings that write it.
func limitFamilies(cs []*compiler) {
	names := map[string]map[string]bool{}
	for _, c := range cs {
		t := c.p.table.Target
		if names[t] == nil {
			names[t] = map[string]bool{LiveFamily: true, DeadFamily: true}
		}
		for _, f := range c.p.families {
			names[t][f.Name] = true
		}
	}
	for _, c := range cs {
		n := len(names[c.p.table.Target])
		if n <= maxFamilies || len(c.p.families) == 0 {
			continue
		}
		c.ps.Errorf(c.p.families[0].at, "families", "merge families; columns inside one family are cheap", "table %s would have %d families, Bigtable takes %d%s", c.p.table.Target, n, maxFamilies, c.besides(cs))
	}
}

// besides names the tables that write the same target.
func (c *compiler) besides(cs []*compiler) (text string) {
	for _, o := range cs {
		if o != c && o.p.table.Target == c.p.table.Target {
			text += ", also written from " + o.p.table.Source
		}
	}
	return text
}
