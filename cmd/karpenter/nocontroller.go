// SPDX-License-Identifier: Apache-2.0

//go:build nocontroller

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

const controllerName = "controller"

// controllerCommand stands for the controllers in a program that is built without
// them, which is smaller and compiles in a fraction of the time.
func controllerCommand(surroundings) *cobra.Command {
	return &cobra.Command{
		Use:                controllerName,
		Short:              "Run the controllers (not in this build)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("this program has the commands only, without the controllers: build it without the tag nocontroller")}
		},
	}
}
