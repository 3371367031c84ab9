// SPDX-License-Identifier: Apache-2.0

// Package image finds the AMIs of an EC2NodeClass, and chooses the AMI for each
// instance type.
//
// An alias stands for the images that AWS publishes for a family. Their IDs are
// in parameters of SSM, one per architecture and kind of accelerator
// (Parameters). Other terms name images by ID, by name and owner, by tags, or by
// a parameter of the user's own. All end in DescribeImages.
//
// A use of an image describes the types that can boot from it: an architecture
// and, with an alias, the devices for which the image has drivers. One image
// may have several uses. Of the images with the same use one is kept: one that
// is not deprecated, then the newest, then that with the greatest name.
package image
