"""Documents of other tools, built from turns and their attribution: values in, values out."""
