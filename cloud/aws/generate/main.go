// SPDX-License-Identifier: Apache-2.0

// Command generate refreshes the data about EC2 that is built into the program:
// descriptions of instance types from DescribeInstanceTypes, and on-demand
// prices from the Pricing API. "make generate-aws" runs it.
//
// It needs credentials of an AWS account for ec2:DescribeInstanceTypes and
// pricing:GetProducts. With -record it reads the descriptions from a file instead,
// in the JSON of "aws ec2 describe-instance-types".
//
// A type that AWS no longer describes stays in the file: an older region may still
// have it. Either all files are written, or, if a call fails, none.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	dir := flags.String("dir", "cloud/ec2", "directory of the data")
	regions := flags.String("regions", "us-east-1,us-east-2,us-west-2", "regions whose instance types to describe")
	prices := flags.String("prices", "us-east-1,us-gov-west-1,us-gov-east-1", "regions whose on-demand prices to read; China needs credentials of its own")
	record := flags.String("record", "", "file to read descriptions from, instead of EC2")
	source := flags.String("source", "", "where and when the record was made, as in \"moto 5.2.5, 2026-10-27\"")
	if err := flags.Parse(args); err != nil {
		return err
	}
	job := &job{Dir: *dir, Date: time.Now().UTC().Format(time.DateOnly), Prices: list(*prices)}
	if *record != "" {
		recorded, err := readRecord(*record)
		if err != nil {
			return err
		}
		from, date, ok := strings.Cut(*source, ", ")
		if !ok {
			return fmt.Errorf("-source %q: want the name and the date of the record, as in \"moto 5.2.5, 2026-10-27\"", *source)
		}
		job.Types, job.TypesSource, job.TypesDate = []catalogue.EC2{recorded}, from, date
		return job.run(ctx)
	}
	job.TypesSource, job.TypesDate = "DescribeInstanceTypes of "+*regions, job.Date
	for _, region := range list(*regions) {
		cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
		if err != nil {
			return fmt.Errorf("AWS configuration for region %s: %w", region, err)
		}
		job.Types = append(job.Types, ec2.NewFromConfig(cfg))
	}
	job.Pricing = func(region string) (client.Pricing, error) {
		cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(client.PricingRegion(region)))
		if err != nil {
			return nil, fmt.Errorf("AWS configuration for the prices of region %s: %w", region, err)
		}
		return pricing.NewFromConfig(cfg), nil
	}
	return job.run(ctx)
}

// list splits a flag at its commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
