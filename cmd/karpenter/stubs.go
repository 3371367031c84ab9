package main

import "github.com/spf13/cobra"

func statusCommand(surroundings) *cobra.Command  { return &cobra.Command{Use: "status", Run: func(*cobra.Command, []string) {}} }
func savingsCommand(surroundings) *cobra.Command { return &cobra.Command{Use: "savings", Run: func(*cobra.Command, []string) {}} }
