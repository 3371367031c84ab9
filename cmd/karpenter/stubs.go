package main

import "github.com/spf13/cobra"

func savingsCommand(surroundings) *cobra.Command {
	return &cobra.Command{Use: "savings", Run: func(*cobra.Command, []string) {}}
}
