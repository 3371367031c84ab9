// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud/kwok"
)

// labelMeanings are the labels of EC2 instance types and what they say.
var labelMeanings = map[string]string{
	"instance-accelerator-count":               "the number of accelerators that are not GPUs",
	"instance-accelerator-manufacturer":        "the manufacturer of the accelerators",
	"instance-accelerator-name":                "the name of the accelerators",
	"instance-capability-flex":                 "whether the type is a flex type",
	"instance-category":                        "the letters at the beginning of the name",
	"instance-cpu":                             "the number of vCPUs",
	"instance-cpu-manufacturer":                "the manufacturer of the CPU",
	"instance-cpu-sustained-clock-speed-mhz":   "the sustained clock speed of the CPU in MHz",
	"instance-ebs-bandwidth":                   "the highest bandwidth to EBS in Mbps",
	"instance-encryption-in-transit-supported": "whether traffic between instances is encrypted",
	"instance-family":                          "the name up to the dot",
	"instance-generation":                      "the number after the letters",
	"instance-gpu-count":                       "the number of GPUs",
	"instance-gpu-manufacturer":                "the manufacturer of the GPUs",
	"instance-gpu-memory":                      "the memory of one GPU in MiB",
	"instance-gpu-name":                        "the name of the GPUs",
	"instance-hypervisor":                      "the hypervisor; empty for bare metal",
	"instance-local-nvme":                      "the size of local NVMe disks in GB",
	"instance-memory":                          "memory in MiB",
	"instance-network-bandwidth":               "the baseline bandwidth of the network in Mbps",
	"instance-size":                            "the name after the dot",
}

const (
	labelPrefix = "karpenter.k8s.aws/"
	tableEnd    = "<!-- end -->"
)

// TestInstanceTypeTables compares the tables of labels and of instance types in the
// documents with the types that are built in. With -rewrite it writes them.
func TestInstanceTypeTables(t *testing.T) {
	entries, err := entriesOf("ec2", "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for _, c := range []struct{ path, begin, table string }{
		{"docs/instance-types.md", "<!-- labels of instance types -->\n", labelTable(t, entries)},
		{"docs/instance-type-list.md", "<!-- instance types -->\n", typeTables(t, entries)},
	} {
		page, err := os.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, _ := strings.Cut(string(page), c.begin)
		_, after, found := strings.Cut(rest, tableEnd)
		if !found {
			t.Fatalf("%s has no place for the table", c.path)
		}
		compare(t, c.path, before+c.begin+c.table+tableEnd+after)
	}
}

// labelsOf returns the labels of the type. A label that the type does not have is missing.
func labelsOf(e kwok.Entry) map[string]string {
	out := map[string]string{}
	for _, r := range e.Requirements {
		if name, ours := strings.CutPrefix(r.Key, labelPrefix); ours && len(r.Values) == 1 {
			out[name] = r.Values[0]
		}
	}
	return out
}

func labelTable(t *testing.T, entries []kwok.Entry) string {
	t.Helper()
	all, example := map[string]map[string]bool{}, map[string]string{}
	for _, e := range entries {
		labels := labelsOf(e)
		if e.Name == "m5.large" {
			example = labels
		}
		for name, value := range labels {
			if all[name] == nil {
				all[name] = map[string]bool{}
			}
			all[name][value] = true
		}
	}
	var b strings.Builder
	b.WriteString("| label | meaning | m5.large | all values |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		meaning := labelMeanings[name]
		if meaning == "" {
			t.Errorf("labelMeanings lacks %s", name)
		}
		one := "does not exist"
		if value, has := example[name]; has {
			one = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s |\n", labelPrefix, name, meaning, one, valuesOf(slices.Collect(maps.Keys(all[name]))))
	}
	return b.String()
}

// valuesOf lists values if they are few; else numbers as a range, and names as some of
// them.
func valuesOf(values []string) string {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	numbers := !slices.ContainsFunc(values, func(s string) bool { _, err := strconv.Atoi(s); return err != nil })
	slices.SortFunc(values, func(a, b string) int {
		if numbers {
			return number(a) - number(b)
		}
		return cmp.Compare(a, b)
	})
	switch {
	case len(values) <= 24 && !numbers, len(values) <= 7:
		for i, v := range values {
			values[i] = "`" + v + "`"
			if v == "" {
				values[i] = "empty"
			}
		}
		return strings.Join(values, ", ")
	case numbers:
		return fmt.Sprintf("%s to %s", values[0], values[len(values)-1])
	default:
		return fmt.Sprintf("%d values, such as `%s`", len(values), values[len(values)/2])
	}
}

// typeTables returns a section for each category of instance types.
func typeTables(t *testing.T, entries []kwok.Entry) string {
	t.Helper()
	categories := map[string][]string{}
	slices.SortStableFunc(entries, func(a, b kwok.Entry) int {
		x, y := labelsOf(a), labelsOf(b)
		size := func(l map[string]string) int { n, _ := strconv.Atoi(l["instance-cpu"]); return n }
		return cmp.Or(cmp.Compare(x["instance-family"], y["instance-family"]), size(x)-size(y), cmp.Compare(a.Name, b.Name))
	})
	for _, e := range entries {
		l := labelsOf(e)
		memory, err := strconv.ParseFloat(l["instance-memory"], 64)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		devices := ""
		for _, kind := range []string{"gpu", "accelerator"} {
			if name := l["instance-"+kind+"-name"]; name != "" {
				devices = strings.TrimSpace(l["instance-"+kind+"-count"] + " " + name)
			}
		}
		price := 0.0
		for _, o := range e.Offerings {
			onDemand := slices.ContainsFunc(o.Requirements, func(r kwok.RequirementEntry) bool { return slices.Contains(r.Values, "on-demand") })
			if onDemand && o.Price != nil {
				price = *o.Price
			}
		}
		pods := e.Resources[corev1.ResourcePods]
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s | %d | %.4f |\n", e.Name, e.Architecture, l["instance-cpu"],
			strconv.FormatFloat(memory/1024, 'f', -1, 64), devices, l["instance-local-nvme"], l["instance-network-bandwidth"], pods.Value(), price)
		categories[l["instance-category"]] = append(categories[l["instance-category"]], row)
	}
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(categories)) {
		fmt.Fprintf(&b, "\n## Category %s\n\n| type | architecture | vCPUs | memory in GiB | GPUs or accelerators | NVMe in GB | network in Mbps | pods | on-demand $/h |\n|---|---|--:|--:|---|--:|--:|--:|--:|\n", c)
		b.WriteString(strings.Join(categories[c], ""))
	}
	return b.String()
}
