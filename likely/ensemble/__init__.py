"""What compares classes in Classifier and TextClassifier: ensemble members, out-of-fold scores, calibration."""
