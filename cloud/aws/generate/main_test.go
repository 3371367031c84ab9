// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/client"
	facts "karpenter/cloud/ec2"
)

// account offers the types, or, without any, all that EC2 describes.
func account(t *testing.T, names ...string) *awsfake.AWS {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	a, err := awsfake.New(awsfake.Config{Clock: clock, Types: names})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// of is the job for an account and a directory.
func of(a *awsfake.AWS, dir string) *job {
	return &job{
		Dir: dir, Date: "2026-11-22", Types: []catalogue.EC2{a.Services().EC2}, TypesSource: "test", TypesDate: "2026-11-22",
		Prices: []string{a.Config().Region}, Pricing: func(string) (client.Pricing, error) { return a.Services().Pricing, nil },
	}
}

func data(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"prices", "extras"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func written(t *testing.T, dir string) map[string]facts.Description {
	t.Helper()
	parsed, err := facts.ParseRecord(read(t, dir, "described.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]facts.Description{}
	for _, d := range parsed.Types {
		out[d.InstanceType] = d
	}
	return out
}

// TestGenerate reads a whole account through the SDK's types: the files hold what
// the account offers, and a second run changes nothing.
func TestGenerate(t *testing.T) {
	a, dir := account(t), data(t)
	if err := of(a, dir).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	built, err := facts.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	got := written(t, dir)
	for _, want := range built {
		if diff := cmp.Diff(want, got[want.InstanceType]); diff != "" {
			t.Errorf("%s: %s", want.InstanceType, diff)
		}
	}
	if len(got) != len(built) {
		t.Errorf("%d types, want %d", len(got), len(built))
	}
	var table facts.PriceTable
	if err := json.Unmarshal(read(t, dir, "prices/us-west-2.json"), &table); err != nil {
		t.Fatal(err)
	}
	want, err := facts.Start("us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	if table.Region != "us-west-2" || table.Date != "2026-11-22" || table.Currency != "USD" || table.Source == "" || len(table.OnDemand) != len(want.OnDemand) {
		t.Errorf("%s of %s in %s from %q: %d prices, want %d", table.Region, table.Date, table.Currency, table.Source, len(table.OnDemand), len(want.OnDemand))
	}
	for name, price := range table.OnDemand {
		if price != want.OnDemand[name].Dollars() {
			t.Errorf("%s: %v, want %v", name, price, want.OnDemand[name].Dollars())
		}
	}
	var extras facts.ExtraPrices
	if err := json.Unmarshal(read(t, dir, "extras/us-west-2.json"), &extras); err != nil {
		t.Fatal(err)
	}
	wantExtras, err := facts.Extras("us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	wantExtras.Source, wantExtras.Date = extras.Source, "2026-11-22"
	if diff := cmp.Diff(wantExtras, &extras); diff != "" || extras.Source != "AWS Pricing API" {
		t.Errorf("volumes and addresses, from %q: %s", extras.Source, diff)
	}
	types, prices := read(t, dir, "described.json"), read(t, dir, "prices/us-west-2.json")
	if err := of(a, dir).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(types) != string(read(t, dir, "described.json")) || string(prices) != string(read(t, dir, "prices/us-west-2.json")) {
		t.Error("a second run has changed the files")
	}
}

// TestGenerateKeeps: a type that EC2 no longer describes stays, a new one is added.
func TestGenerateKeeps(t *testing.T) {
	dir := data(t)
	for _, sold := range [][]string{{"m5.large", "m5.metal"}, {"c5.large", "m5.metal"}} {
		if err := of(account(t, sold...), dir).run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := slices.Sorted(maps.Keys(written(t, dir))); !slices.Equal(got, []string{"c5.large", "m5.large", "m5.metal"}) {
		t.Errorf("types %v", got)
	}
}

// TestGenerateFails: if any call fails, the files stay as they are.
func TestGenerateFails(t *testing.T) {
	dir := data(t)
	if err := of(account(t, "m5.large", "m5.metal"), dir).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := read(t, dir, "described.json")
	for _, operation := range []string{"DescribeInstanceTypes", "GetProducts"} {
		a := account(t, "c5.large", "m5.metal")
		a.Fail(operation, awsfake.Failure{Code: "InternalError", Server: true})
		if err := of(a, dir).run(t.Context()); err == nil {
			t.Errorf("%s: no error", operation)
		}
		if string(before) != string(read(t, dir, "described.json")) {
			t.Errorf("%s: the descriptions have changed", operation)
		}
	}
}

// TestRecord reads descriptions from files in both forms, without types that the
// program does not use.
func TestRecord(t *testing.T) {
	m5 := `"InstanceType":"m5.large","SupportedVirtualizationTypes":["hvm"],"ProcessorInfo":{"SupportedArchitectures":["x86_64"],"SustainedClockSpeedInGhz":3.1},"VCpuInfo":{"DefaultVCpus":2}`
	mac := `"InstanceType":"mac2.metal","SupportedVirtualizationTypes":["hvm"],"ProcessorInfo":{"SupportedArchitectures":["arm64_mac"]}`
	pv := `"InstanceType":"t1.micro","SupportedVirtualizationTypes":["paravirtual"],"ProcessorInfo":{"SupportedArchitectures":["x86_64"]}`
	for form, text := range map[string]string{
		"of the command line": `{"InstanceTypes":[{` + m5 + `},{` + mac + `},{` + pv + `}]}`,
		"by type":             `{"mac2.metal":{` + mac + `},"m5.large":{` + m5 + `},"t1.micro":{` + pv + `}}`,
	} {
		dir := data(t)
		path := filepath.Join(dir, "record.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), []string{"-dir", dir, "-record", path, "-source", "a test, 2026-11-22"}); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		got := written(t, dir)
		if len(got) != 1 || got["m5.large"].VCpuInfo.DefaultVCpus != 2 || got["m5.large"].ProcessorInfo.SustainedClockSpeedInGhz != 3.1 {
			t.Errorf("%s: %v", form, got)
		}
	}
	if err := run(t.Context(), []string{"-dir", data(t), "-record", "missing.json", "-source", "a test, 2026-11-22"}); err == nil {
		t.Error("no error about a record that is not there")
	}
}
