// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/client"
	facts "karpenter/cloud/ec2"
)

// job is what to read, and where to write it.
type job struct {
	Dir  string
	Date string // 2006-01-02, of the prices

	Types                  []catalogue.EC2 // of each region; a later one wins
	TypesSource, TypesDate string

	Prices  []string                                    // regions
	Pricing func(region string) (client.Pricing, error) // nil = prices stay as they are
}

// run reads everything, and then writes the files.
func (j *job) run(ctx context.Context) error {
	files := map[string][]byte{}
	if err := j.describe(ctx, files); err != nil {
		return err
	}
	if j.Pricing != nil {
		for _, region := range j.Prices {
			if err := j.price(ctx, region, files); err != nil {
				return err
			}
			if err := j.extras(ctx, region, files); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(j.Dir, name), files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// describe renders described.json: the types in the file, and over them those that
// EC2 describes now.
func (j *job) describe(ctx context.Context, files map[string][]byte) error {
	const name = "described.json"
	types := map[string]facts.Description{}
	text, err := os.ReadFile(filepath.Join(j.Dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		before, err := facts.ParseRecord(text)
		if err != nil {
			return err
		}
		for _, d := range before.Types {
			types[d.InstanceType] = d
		}
	}
	for _, api := range j.Types {
		found, err := catalogue.DescribeTypes(ctx, api)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errors.New("EC2 describes no instance types")
		}
		maps.Copy(types, found)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"source\":%s,\"date\":%s,\"types\":[\n", quoted(j.TypesSource), quoted(j.TypesDate))
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(types)) {
		lines = append(lines, compact(types[key]))
	}
	out.WriteString(strings.Join(lines, ",\n") + "\n]}\n")
	files[name] = out.Bytes()
	return nil
}

// price renders the price table of a region.
func (j *job) price(ctx context.Context, region string, files map[string][]byte) error {
	api, err := j.Pricing(region)
	if err != nil {
		return err
	}
	prices, err := catalogue.OnDemandPrices(ctx, api, region)
	if err != nil {
		return fmt.Errorf("prices of region %s: %w", region, err)
	}
	currency := "USD"
	if strings.HasPrefix(region, "cn-") {
		currency = "CNY"
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"region\":%s,\"source\":%s,\"date\":%s,\"currency\":%s,\"onDemand\":{\n",
		quoted(region), quoted("AWS Pricing API"), quoted(j.Date), quoted(currency))
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		lines = append(lines, fmt.Sprintf("%s:%s", quoted(name), number(prices[name].Dollars())))
	}
	out.WriteString(strings.Join(lines, ",\n") + "\n}}\n")
	files[filepath.Join("prices", region+".json")] = out.Bytes()
	return nil
}

// extras renders what volumes and addresses cost in a region.
func (j *job) extras(ctx context.Context, region string, files map[string][]byte) error {
	api, err := j.Pricing(region)
	if err != nil {
		return err
	}
	found := &facts.ExtraPrices{}
	if err := catalogue.AskExtras(ctx, api, region, found); err != nil {
		return fmt.Errorf("prices of volumes and addresses in region %s: %w", region, err)
	}
	if found.Volumes["gp3"].GiB == 0 || found.PublicIPv4 == 0 {
		return fmt.Errorf("the price list of region %s has no volumes of type gp3, or no public IPv4 addresses", region)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"region\":%s,\n\"source\":%s,\n\"date\":%s,\n\"currency\":%s,\n\"volumes\":{\n",
		quoted(region), quoted("AWS Pricing API"), quoted(j.Date), quoted(found.Currency))
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(found.Volumes)) {
		volume, err := json.Marshal(found.Volumes[name])
		if err != nil {
			return err
		}
		lines = append(lines, quoted(name)+":"+string(volume))
	}
	fmt.Fprintf(&out, "%s\n},\n\"publicIPv4\":%s}\n", strings.Join(lines, ",\n"), number(found.PublicIPv4))
	files[filepath.Join("extras", region+".json")] = out.Bytes()
	return nil
}

func number(v float64) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // prices are finite
	}
	return string(text)
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // every string is valid JSON
	}
	return string(out)
}
