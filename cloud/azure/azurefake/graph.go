// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is a resource as Resource Graph shows it.
type row struct {
	columns map[string]any
	began   time.Time
}

// ghost is what is gone, and is shown for a while.
type ghost struct {
	row
	until time.Time
}

// hauntLocked has Resource Graph go on to show what is gone, as it was.
func (c *Cloud) hauntLocked(r row, now time.Time) {
	if c.listLag > 0 {
		c.ghosts = append(c.ghosts, ghost{r, now.Add(c.listLag)})
	}
}

// shown makes a row of a resource: types and groups are in lower case.
func shown(model any, kind, group string, began time.Time) row {
	columns := map[string]any{}
	text, err := json.Marshal(model)
	if err == nil {
		err = json.Unmarshal(text, &columns)
	}
	if err != nil {
		panic("azurefake: a resource is no JSON: " + err.Error())
	}
	columns["type"], columns["resourceGroup"] = kind, strings.ToLower(group)
	return row{columns, began}
}

func (c *Cloud) vmRow(v *virtualMachine) row {
	return shown(v.model, vmType, groupOf(*v.model.ID), v.began)
}

func nicRow(nic *networkInterface) row {
	return shown(nic.model, nicType, groupOf(*nic.model.ID), nic.began)
}

// groupOf returns the resource group of an ARM ID.
func groupOf(id string) string { return strings.Split(id, "/")[4] }

// rowsLocked are all resources that Resource Graph shows by now, by ID.
func (c *Cloud) rowsLocked() []row {
	latest := c.config.Clock.Now().Add(-c.listLag)
	var out []row
	for _, name := range slices.Sorted(maps.Keys(c.vms)) {
		v := c.vms[name]
		out = append(out, c.vmRow(v))
		for _, of := range slices.Sorted(maps.Keys(v.extensions)) {
			out = append(out, shown(v.extensions[of].model, extensionType, groupOf(*v.model.ID), v.extensions[of].began))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.nics)) {
		out = append(out, nicRow(c.nics[name]))
	}
	out = slices.DeleteFunc(out, func(r row) bool { return r.began.After(latest) })
	for _, g := range c.ghosts {
		if g.began.After(latest) {
			continue // it was never shown
		}
		out = append(out, g.row)
	}
	return out
}

// mostRows is how many rows an answer has at most, usualRows if the query does not
// say how many.
const (
	mostRows  = 1000
	usualRows = 100
)

// query answers the queries that are known: a table, and conditions.
func (c *Cloud) query(r *request) (int, map[string]string, any, *problem) {
	var asked struct {
		Subscriptions []string
		Query         string
		Options       struct {
			ResultFormat string
			SkipToken    string `json:"$skipToken"`
			Top          int    `json:"$top"`
		}
	}
	bad := func(why string) (int, map[string]string, any, *problem) {
		return 0, nil, nil, refuse(http.StatusBadRequest, "BadRequest", "Please provide below info when asking for support: %s", why)
	}
	if err := json.Unmarshal(r.body, &asked); err != nil || asked.Options.ResultFormat != "objectArray" || len(asked.Subscriptions) != 1 {
		return bad("the request")
	}
	parts := strings.Split(asked.Query, "|")
	if strings.TrimSpace(parts[0]) != "Resources" {
		return bad("the table")
	}
	rows := c.rowsLocked()
	if asked.Subscriptions[0] != c.config.Subscription {
		rows = nil
	}
	ordered := false
	for _, part := range parts[1:] {
		if strings.TrimSpace(part) == "order by id asc" {
			ordered = true
			slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(fmt.Sprint(a.columns["id"]), fmt.Sprint(b.columns["id"])) })
			continue
		}
		holds := condition(strings.TrimSpace(part))
		if holds == nil {
			return bad(part)
		}
		rows = slices.DeleteFunc(rows, func(r row) bool { return !holds(r) })
	}
	if !ordered { // each answer has another order
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	size := min(c.pageSize, mostRows)
	if asked.Options.Top > 0 {
		size = min(size, asked.Options.Top)
	} else {
		size = min(size, usualRows)
	}
	from, _ := strconv.Atoi(asked.Options.SkipToken) // 0 on the first page
	from = min(max(from, 0), len(rows))
	end := min(from+size, len(rows))
	data := []map[string]any{}
	for _, of := range rows[from:end] {
		data = append(data, of.columns)
	}
	answer := map[string]any{"totalRecords": len(rows), "count": len(data), "data": data, "facets": []any{}, "resultTruncated": "false"}
	if end < len(rows) {
		answer["$skipToken"] = strconv.Itoa(end)
	}
	return http.StatusOK, nil, answer, nil
}

// condition reads a condition of a query, nil if it is not known.
func condition(text string) func(row) bool {
	if m := regexp.MustCompile(`^where (type|resourceGroup|name) == '([^']*)'$`).FindStringSubmatch(text); m != nil {
		return func(r row) bool { return r.columns[m[1]] == m[2] }
	}
	m := regexp.MustCompile(`^where (not\()?tags has_cs '([^']*)'\)?$`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	// A term is found whole, in keys and in values.
	term := regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(m[2]) + `($|[^A-Za-z0-9])`)
	return func(r row) bool {
		tags, err := json.Marshal(r.columns["tags"])
		return err == nil && term.Match(tags) == (m[1] == "")
	}
}
