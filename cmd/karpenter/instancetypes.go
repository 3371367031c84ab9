// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"karpenter/cloud/ec2"
	"karpenter/cloud/kwok"
)

// instanceTypesCommand prints an instance types file.
func instanceTypesCommand(s surroundings) *cobra.Command {
	var catalogue, region string
	c := &cobra.Command{
		Use:     "instance-types",
		Short:   "Print an instance types file for the KWOK provider",
		Example: "  karpenter instance-types --catalogue ec2 --region us-east-1 > types.json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			entries, err := entriesOf(catalogue, region)
			if err != nil {
				return usageError{err}
			}
			if err := kwok.WriteEntries(s.stdout, entries); err != nil {
				return err
			}
			next(s, "karpenter controller --cloud-provider kwok --instance-types-file-path FILE")
			return nil
		},
	}
	c.Flags().StringVar(&catalogue, "catalogue", "kwok", "kwok: the types that the provider generates without a file; ec2: real types with simulated spot prices")
	c.Flags().StringVar(&region, "region", "us-east-1", "region of the ec2 catalogue")
	complete(c, "catalogue", cobra.FixedCompletions([]string{"kwok", "ec2"}, cobra.ShellCompDirectiveNoFileComp))
	return c
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
