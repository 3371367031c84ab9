package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"karpenter/cloud/ec2"
	"karpenter/cloud/kwok"
)

// instanceTypes prints an instance types file.
func instanceTypes(_ context.Context, s surroundings) error {
	flags := flag.NewFlagSet("instance-types", flag.ContinueOnError)
	catalogue := flags.String("catalogue", "kwok", "kwok, the types generated without a file; or ec2, real types with simulated spot prices")
	region := flags.String("region", "us-east-1", "region of the ec2 catalogue")
	if err := parsed(flags, s); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	entries, err := entriesOf(*catalogue, *region)
	if err != nil {
		return usageError{err}
	}
	return kwok.WriteEntries(s.stdout, entries)
}

func entriesOf(catalogue, region string) ([]kwok.Entry, error) {
	switch catalogue {
	case "kwok":
		return kwok.DefaultEntries(), nil
	case "ec2":
		regions, err := ec2.Regions()
		if err != nil {
			return nil, err
		}
		entries, err := ec2.KWOKTypes(region)
		if err != nil {
			return nil, fmt.Errorf("--region: %q: want one of %s: %w", region, strings.Join(regions, ", "), err)
		}
		return entries, nil
	}
	return nil, fmt.Errorf("--catalogue: %q: want kwok or ec2", catalogue)
}
